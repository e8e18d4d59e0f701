"""What a survey works on: data, settings, treatment, machine; and how long it may take."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from kgcf.causal.treatment import Treatment
from kgcf.config import Settings
from kgcf.data.dataset import Dataset
from kgcf.model.kgcf import KGCF
from kgcf.propagation.plan.planner import Budget, Planner
from kgcf.runs.passes import passes_of
from kgcf.training.batches import Batch
from kgcf.training.cost_model import Work
from kgcf.training.passes import Epoch
from kgcf.training.step import StepContext
from kgcf.training.substitutes import Substitutes

Clock = Callable[[], float]
MakeContext = Callable[[KGCF, Dataset, Settings, Treatment | None, Substitutes | None], StepContext]
STREAM = 0x5E17  # draws of its own: a survey changes no training
QUICK = 0.25  # seconds after which nothing more of a kind is timed


@dataclass(frozen=True)
class Ground:
    """What is surveyed: the data with settled `remove`, the treatment, and how a step is made of them."""

    data: Dataset
    settings: Settings
    treatment: Treatment | None  # of the train graph
    valid_treatment: Treatment | None  # of the graph that validation observes
    device: torch.device
    context: MakeContext
    processes: int = 1
    clock: Clock = time.monotonic

    @cached_property
    def first_epoch(self) -> Epoch:
        """The passes of training's first epoch: half a second's work for a million triples, the same at every depth."""
        return passes_of(self.data.graph, self.settings).epoch(self.settings.training.seed, 0)

    def with_size(self, layers: int, negatives: int, fan_in: int | None = None) -> Settings:
        """The settings with another depth, number of negatives and fan-in."""
        encoder = self.settings.encoder.model_copy(update={"layers": layers})
        objective = self.settings.objective.model_copy(update={"negatives": negatives})
        training = self.settings.training.model_copy(update={"fan_in": fan_in})
        return self.settings.model_copy(update={"encoder": encoder, "objective": objective, "training": training})


@dataclass
class Allowance:
    """The seconds that a survey may take."""

    seconds: float
    clock: Clock
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """They count from now on: what was compiled or loaded before, training needs anyway."""
        self.started = self.clock()

    @property
    def left(self) -> float:
        """What is left of them."""
        return self.seconds - (self.clock() - self.started)


def mean_work(
    planner: Planner,
    heads: NDArray[np.int64],
    relations: NDArray[np.int64],
    batch: Batch | None,
    budget: Budget,
    fan_in: int | None = None,
) -> Work:
    """Updates and messages per query: of a training batch, or, without one, of ranking every entity."""
    if not len(heads):
        return Work(0.0, 0.0)
    candidates, hidden = (None, None) if batch is None else (batch.candidates, batch.hidden)
    thinning = None if batch is None else batch.thinning(fan_in)
    updates = messages = 0
    for plan in planner.parts(heads, relations, candidates, hidden, budget, thinning):
        updates, messages = updates + plan.slot_count, messages + plan.edge_count
    return Work(updates / len(heads), messages / len(heads))
