"""The whole way, top to bottom: data → treatment → substitutes → model → training → calibration → evaluation."""

import hashlib
import json
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from kgcf.config import Settings, configure
from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.devices import CPU, find_device
from kgcf.errors import DataError
from kgcf.model import KGCF
from kgcf.prediction.observed import ObservedGraph
from kgcf.propagation.plan import Planner
from kgcf.run import MODEL, Run, new_model
from kgcf.runs import HISTORY, RunFolder
from kgcf.stages import Say, quiet, substitutes_stage, treatment_stage
from kgcf.storage import write_json
from kgcf.training.batches import choose_removal, epoch_order, make_batch, stream
from kgcf.training.distributed import World
from kgcf.training.loop import Listener, Trainer
from kgcf.training.step import StepContext
from kgcf.training.substitutes import Substitutes
from kgcf.treatment import Treatment
from kgcf.validation import divided_mrr

SLOTS_WORTH_THREADS = 60_000  # state updates per batch from which a second thread pays


@dataclass(frozen=True)
class Surroundings:
    """Who watches and who helps: progress, messages, other processes."""

    listener: Listener = field(default_factory=Listener)
    say: Say = quiet
    world: World = field(default_factory=World)


def fit(
    source: Any,  # noqa: ANN401
    output: str | Path,
    *,
    preset: str = "default",
    config: Path | None = None,
    changes: Iterable[str] = (),
    around: Surroundings | None = None,
    device: str = CPU,
) -> Run:
    """Train a model on a benchmark, file, folder, frame or dataset; the run folder `output` must be new."""
    place = find_device(device)
    data = source if isinstance(source, Dataset) else read(source)
    settings = settle(configure(preset, data.name, config, changes), data)
    around = around or Surroundings()
    folder = RunFolder(Path(output))
    with folder.alone(new=True) if around.world.leads else nullcontext():
        with around.world.leader_first():
            if around.world.leads:
                folder.create(data, settings, preset)
        return _train(folder, data, settings, around, place, resumed=False)


def resume(path: str | Path, around: Surroundings | None = None, device: str = CPU) -> Run:
    """Continue a run that was stopped, to the same weights as without the stop."""
    place = find_device(device)
    folder, around = RunFolder(Path(path)), around or Surroundings()
    with folder.alone() if around.world.leads else nullcontext():
        folder.check()
        if not folder.sealed(MODEL):
            return _train(folder, folder.dataset(), folder.settings(), around, place, resumed=True)
        return _finish(Run.open(path, device), around)


def _finish(run: Run, around: Surroundings) -> Run:
    """Nothing is left to train: only what a stop after the training may have left undone."""
    if around.world.leads:
        run.folder.rewrite_log(run.folder.history())
        if run.calibration is None:
            run.calibrate(test=False)
    return run


def open_run(path: str | Path, device: str = CPU) -> Run:
    """Open a finished run, to compute on a device; nothing but its folder is needed."""
    return Run.open(path, device)


def settle(settings: Settings, data: Dataset) -> Settings:
    """Replace what was left to the data (`remove = auto`, threads) by what the data say; refuse what cannot work."""
    if not len(data.graph):
        raise DataError(f"{data.name} has no train triples, so there is nothing to learn from.")
    training = settings.training
    remove = training.remove
    if remove == "auto":
        remove = choose_removal(data.graph, data.valid.queries)
    settled = settings.model_copy(update={"training": training.model_copy(update={"remove": remove})})
    threads = training.threads or _useful_threads(settled, data)
    return settled.model_copy(update={"training": settled.training.model_copy(update={"threads": threads})})


def _useful_threads(settings: Settings, data: Dataset) -> int:
    """One thread where a batch is so small that threads would wait for each other, else one per core.

    Two processes (`torchrun --nproc-per-node 2 -m kgcf train …`) use both cores on small batches too.
    """
    training = settings.training
    assert training.remove != "auto"
    triples = epoch_order(len(data.graph), training.seed, 0)[: training.batch_size]
    batch = make_batch(data.graph, triples, settings.objective.negatives, training.remove, stream(training.seed, 0))
    if not len(batch):
        return 1
    plan = Planner(data.graph, settings.encoder.layers).plan(
        batch.heads, batch.relations, batch.candidates, batch.hidden
    )
    return torch.get_num_threads() if plan.slot_count >= SLOTS_WORTH_THREADS else 1


def _train(
    folder: RunFolder, data: Dataset, settings: Settings, around: Surroundings, device: torch.device, resumed: bool
) -> Run:
    with around.world.leader_first():
        treatment = treatment_stage(folder, data, settings, around.say)
        substitutes = substitutes_stage(folder, data, settings, treatment, around.say)
    model = new_model(settings, len(data.relations)).to(device)
    training = settings.training
    bound = ObservedGraph(model, data.graph, data.entities, data.relations, treatment)

    def validate() -> float:
        return divided_mrr(bound.scorer, data, training.validate_triples, training.seed, around.world)

    trainer = Trainer(
        step_context(model, data, settings, treatment, substitutes),
        training,
        validate if len(data.valid) else None,
        around.world,
        folder.file("checkpoint.safetensors"),
        _key(data, settings),
        around.listener,
    )
    if resumed and trainer.checkpoint is not None and trainer.checkpoint.is_file():
        trainer.resume()
    if resumed and around.world.leads:
        folder.rewrite_log(trainer.progress.history)
    progress = trainer.run()
    run = Run(folder, model, data, settings)
    if around.world.leads:
        _record(folder, progress.history, progress.best, progress.best_epoch)
        run.save_model()
        run.calibrate(test=False)
    return run


def step_context(
    model: KGCF, data: Dataset, settings: Settings, treatment: Treatment | None, substitutes: Substitutes | None
) -> StepContext:
    """What a gradient step needs, from the settings and what the stages made."""
    training = settings.training
    assert training.remove != "auto"
    return StepContext(
        model=model,
        graph=data.graph,
        objective=settings.objective,
        treated=None if treatment is None else treatment.treated,
        leave_one_out=settings.treatment.leave_one_out,
        substitutes=substitutes,
        remove=training.remove,
        skip_unreached=training.skip_unreached,
        memory=training.memory_gb * 1e9,
    )


def _key(data: Dataset, settings: Settings) -> str:
    """What a checkpoint depends on: the train graph and every setting."""
    text = data.graph.fingerprint + json.dumps(settings.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _record(folder: RunFolder, history: list[dict[str, float]], best: float, best_epoch: int) -> None:
    """Keep what training did, in a file of its own: those that exist already are sealed."""
    facts = {"epochs": history, "best_validation_mrr": best, "best_epoch": best_epoch}
    write_json(folder.file(HISTORY), facts)
