"""The whole way, top to bottom: data → treatment → substitutes → training → memory → calibration → evaluation."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from kgcf.causal.cached_stages import Say, quiet
from kgcf.causal.treatment import Treatment
from kgcf.config import PRESETS, Changes, Settings, benchmark_note, configure
from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.durations import AUTO, is_auto, read_duration
from kgcf.evaluation.results import Evaluation
from kgcf.machine.devices import CPU, find_device
from kgcf.machine.provenance import provenance, running_commit
from kgcf.model.kgcf import KGCF
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.progress import Advance, counting, silent
from kgcf.runs.baselines import baseline_trainer, check_baseline, choose_model, within
from kgcf.runs.folder import HISTORY, RunFolder
from kgcf.runs.memory_addition import finish_memory, is_pending
from kgcf.runs.memory_stage import memory_stage
from kgcf.runs.model_file import MODEL, new_model
from kgcf.runs.run import Run
from kgcf.runs.settling import settle
from kgcf.runs.stages import keep_treatment, substitutes_stage, treatment_stage, treatment_to_answer
from kgcf.runs.time_budget import InTime, Situation, is_given, settle_in_time, time_limit
from kgcf.runs.training_log import TrainingLog
from kgcf.runs.validation import divided_mrr
from kgcf.runs.watch import Watcher
from kgcf.screen import somebody_looks
from kgcf.storage import write_json
from kgcf.training.distributed import World
from kgcf.training.loop import Listener, Trainer
from kgcf.training.step import StepContext
from kgcf.training.substitutes import Substitutes


@dataclass(frozen=True)
class Execution:
    """Who watches and who helps: progress, messages, other processes; when the command began; what it does without."""

    listener: Listener = field(default_factory=Listener)
    say: Say = quiet
    world: World = field(default_factory=World)
    started: float = field(default_factory=monotonic)
    without_memory: str = ""  # why a memory that the settings allow is not trained; none given: it is


def fit(
    source: Any,  # noqa: ANN401
    output: str | Path,
    *,
    preset: str = "default",
    config: str | Path | None = None,
    changes: Changes = (),
    seed: int | None = None,
    time: str | float | None = AUTO,
    model: str | None = None,
    progress: bool | None = None,
    execution: Execution | None = None,
    device: str = CPU,
) -> Run:
    """Train a model on a benchmark, file, folder, frame or dataset; the run folder `output` must be new.

    `changes` are settings, `{"training.batch_size": 64}` or `["training.batch_size=64"]`; `seed` sets every seed that
    they leave; `config` is a TOML file; `model` is a name that `kgcf models` lists. `time` is what training,
    calibration and an evaluation on test may take together: "30m", seconds, or "none"; if not given, half an hour for
    data that we have no file of settings for. Progress is shown on a terminal and in a notebook, or as `progress` says.
    """
    if not is_auto(time):
        read_duration(time)  # a mistake in it is said before anything is read
    target = find_device(device)
    data = source if isinstance(source, Dataset) else read(source)
    file = None if config is None else Path(config)
    kept = changes if isinstance(changes, str | Mapping) else list(changes)  # they are read more than once
    preset, baseline = choose_model(model, preset, file)
    configured = partial(configure, benchmark=data.benchmark, file=file, changes=kept, seed=seed, baseline=baseline)
    configured(preset)  # a mistake in them is said before anything is made
    with _watched(execution, progress) as watched:
        return _fit(data, RunFolder(Path(output)), configured, preset, time, watched, target)


def _fit(
    data: Dataset,
    folder: RunFolder,
    configured: Callable[[str], Settings],
    preset: str,
    time: str | float | None,
    execution: Execution,
    target: torch.device,
) -> Run:
    """Settle what was left open, make the folder, train."""
    own = preset in PRESETS  # a baseline takes nothing from a benchmark
    if own and (note := benchmark_note(data.benchmark)):
        execution.say(note)
        data = data if note in data.notes else data.with_notes(note)
    if execution.world.leads:
        folder.check_free()
    settled = _settled(data, configured, preset, time, execution, target)  # refuses before there is a folder
    with folder.alone(new=True) if execution.world.leads else nullcontext():
        with execution.world.leader_first():
            if execution.world.leads:
                folder.create(data, settled.settings, preset, settled.record)
                keep_treatment(folder, settled.settings, settled.treatment)
        return _train(folder, data, folder.settings(), execution, target, resumed=False)  # settled once, for all


@contextmanager
def _watched(execution: Execution | None, progress: bool | None) -> Iterator[Execution]:
    """Who watches: those who came with the call; else a bar where somebody looks or wants one; else nobody."""
    running_commit()
    if execution is not None or not (somebody_looks() if progress is None else progress):
        yield execution or Execution()
        return
    with Watcher(shown=True) as watcher:
        yield Execution(watcher, watcher.say)


def resume(
    path: str | Path, execution: Execution | None = None, device: str = CPU, *, progress: bool | None = None
) -> Run:
    """Continue a run that was stopped, to the same weights as without the stop; `progress` as in `fit`."""
    with _watched(execution, progress) as watched:
        return _resume(path, watched, device)


def _resume(path: str | Path, execution: Execution, device: str) -> Run:
    target, folder = find_device(device), RunFolder(Path(path))
    with folder.alone() if execution.world.leads else nullcontext():
        folder.check()
        if not folder.sealed(MODEL):
            return _train(folder, folder.dataset(), folder.settings(), execution, target, resumed=True)
        return _finish(Run.open(path, device), execution)


def _finish(run: Run, execution: Execution) -> Run:
    """Nothing is left to train: only what a stop after the training may have left undone."""
    if execution.world.leads:
        run.folder.rewrite_log(run.folder.history())
        if is_pending(run.folder):
            return finish_memory(run, execution.listener, execution.say)
        if run.calibration is None:
            run.calibrate(test=False)
    return run


def evaluate_on_test(run: Run, advance: Advance = silent) -> Evaluation | None:
    """The last stage, once: rank the test triples, keep the results and the worth of the calibration in the run."""
    return run.evaluate("test", save=True, advance=advance) if len(run.data.test) else None


def open_run(path: str | Path, device: str = CPU) -> Run:
    """Open a finished run, to compute on a device; nothing but its folder is needed."""
    return Run.open(path, device)


def _settled(
    data: Dataset,
    configured: Callable[[str], Settings],
    preset: str,
    time: str | float | None,
    execution: Execution,
    device: torch.device,
) -> InTime:
    """The configuration with all that was left to the data and the time; what others than the preset say stays."""
    settings, world = configured(preset), execution.world
    if settings.baseline is not None:
        check_baseline(settings.baseline, data, world, device)
        limit = None if is_auto(time) else read_duration(time)
        return InTime(within(settings, limit, monotonic() - execution.started))
    if not world.leads:
        return InTime(settings)  # what the leader settles is read from its folder
    given = configured("default")  # the empty preset: what others than the preset say
    say, warn = execution.say, execution.listener.warn
    limit = time_limit(time, data, given, settings)
    if limit is None:
        keep = is_given(given, "encoder.layers")
        return InTime(settle(settings, data, keep_depth=keep, say=say, warn=warn))
    situation = Situation(step_context, device, world.size, started=execution.started)
    return settle_in_time(settings, given, data, limit, situation, say=say, warn=warn)


def _train(
    folder: RunFolder, data: Dataset, settings: Settings, execution: Execution, device: torch.device, resumed: bool
) -> Run:
    if settings.baseline is not None:
        return _train_baseline(folder, data, settings, execution, device, resumed)
    with execution.world.leader_first():
        treatment = treatment_stage(folder, data, settings, execution.say)
        substitutes = substitutes_stage(folder, data, settings, treatment, execution.say)
    model = new_model(settings, len(data.relations)).to(device)
    training = settings.training
    memory = training.memory_gb * 1e9
    asked = data.valid  # about the train graph, or about another one
    known = (
        treatment
        if asked.observed is data.graph
        else treatment_to_answer(folder, data, settings, asked.observed, asked.entities)
    )
    bound = ObservedGraph(model, asked.observed, asked.entities, data.relations, known, memory=memory)

    def validate() -> float:
        def counted(total: int) -> AbstractContextManager[Advance]:
            return counting(total, lambda position: execution.say(position.sentence("validation")))

        limit, world = training.validate_triples, execution.world
        return divided_mrr(bound.scorer, data, limit, training.seed, world, memory, counted)

    trainer = Trainer(
        step_context(model, data, settings, treatment, substitutes),
        training,
        validate if len(data.valid) else None,
        execution.world,
        folder.file("checkpoint.safetensors"),
        _key(data, settings),
        TrainingLog(folder, execution.listener, execution.world.leads),
    )
    if resumed and trainer.checkpoint is not None and trainer.checkpoint.is_file():
        trainer.resume()
    if resumed and execution.world.leads:
        folder.rewrite_log(trainer.progress.history)
    progress = trainer.run()
    run = Run(folder, model, data, settings)
    if execution.world.leads:
        _record(folder, progress.history, progress.best, progress.best_epoch)
        without, listener = execution.without_memory, execution.listener
        run.recall = memory_stage(folder, data, settings, run.bind_task, listener, execution.say, without)
        run.save_model()
        run.calibrate(test=False)
    return run


def _train_baseline(
    folder: RunFolder, data: Dataset, settings: Settings, execution: Execution, device: torch.device, resumed: bool
) -> Run:
    """Another model: no causal stages, its own way of training, everything else as with KGCF."""
    key = _key(data, settings)
    trainer = baseline_trainer(folder, data, settings, execution.listener, device, key, execution.started)
    if resumed and trainer.checkpoint is not None and trainer.checkpoint.is_file():
        trainer.resume()
    if resumed:
        folder.rewrite_log(trainer.progress.history)
    progress = trainer.run()
    run = Run(folder, trainer.model, data, settings)
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
        fan_in=training.fan_in,
    )


def _key(data: Dataset, settings: Settings) -> str:
    """What a checkpoint depends on: the train graph and every setting."""
    text = data.graph.fingerprint + json.dumps(settings.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _record(folder: RunFolder, history: list[dict[str, float]], best: float, best_epoch: int) -> None:
    """Keep what training did, in a file of its own: those that exist already are sealed."""
    facts = {"epochs": history, "best_validation_mrr": best, "best_epoch": best_epoch, "trained_by": provenance()}
    write_json(folder.file(HISTORY), facts)
