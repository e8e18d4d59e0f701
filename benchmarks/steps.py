"""Whole steps of the trainer, as `kgcf train` makes them: batch, plan, forward, backward, Adam."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgcf.causal.treatment import Treatment
from kgcf.config import Settings, configure
from kgcf.data.dataset import Dataset
from kgcf.machine.devices import worker_threads
from kgcf.pipeline import step_context
from kgcf.runs.folder import RunFolder
from kgcf.runs.model_file import new_model
from kgcf.runs.passes import passes_of
from kgcf.runs.settling import settle
from kgcf.runs.stages import substitutes_stage, treatment_stage
from kgcf.training.loop import Trainer
from kgcf.training.step import GradientComputer, StepContext

Step = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model that is ready to be trained, and the step of an index in its first epoch."""

    settings: Settings
    context: StepContext
    treatment: Treatment | None
    step: Step


def prepare(data: Dataset, preset: str, changes: tuple[str, ...], scratch: Path) -> Prepared:
    """Everything that training does before its first step; what the stages make is kept in `scratch`."""
    settings = settle(configure(preset, data.benchmark, None, changes), data)
    folder, training = RunFolder(scratch), settings.training
    treatment = treatment_stage(folder, data, settings)
    substitutes = substitutes_stage(folder, data, settings, treatment)
    context = step_context(new_model(settings, len(data.relations)), data, settings, treatment, substitutes)
    trainer = Trainer(context, training, None)
    computer = GradientComputer(context, worker_threads(context.model.device, training.threads))
    passes = passes_of(data.graph, settings)
    epoch, numbers = passes.epoch(training.seed, 0), np.arange(training.batch_size)

    def step(index: int) -> None:
        trainer._step(computer, [epoch.take((index * training.batch_size + numbers) % len(passes))])

    return Prepared(settings, context, treatment, step)


def trainer_step(data: Dataset, preset: str, changes: tuple[str, ...], scratch: Path) -> Step:
    """The step of this index in an epoch; treatment, entity space and substitutes are kept in `scratch`."""
    return prepare(data, preset, changes, scratch).step
