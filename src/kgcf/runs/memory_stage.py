"""The memory of a run: trained after the paths, weighed against them on validation, kept where it helps."""

import hashlib
import json
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.cached_stages import Say, quiet
from kgcf.config import Settings
from kgcf.data.dataset import Dataset, Split
from kgcf.errors import SettingsError
from kgcf.evaluation.ranks import rank_answers
from kgcf.memory.complex_model import ComplEx
from kgcf.memory.cost import count_operations
from kgcf.memory.memory import FILE as MEMORY
from kgcf.memory.memory import Memory
from kgcf.memory.trainer import MemoryTrainer, OnStep
from kgcf.prediction.blending.blend import FILE as BLEND
from kgcf.prediction.blending.blend import Blend, read_blend
from kgcf.prediction.blending.fitting import fit_blend
from kgcf.prediction.blending.recall import Recall
from kgcf.prediction.blending.reciprocal_ranks import collect_reciprocal_ranks
from kgcf.prediction.blending.scorer import MemoryScorer
from kgcf.prediction.calibration.calibrate import Bind, validation_task
from kgcf.prediction.observed_graph import with_paths
from kgcf.progress import Minutes, showing
from kgcf.runs.folder import MEMORY_CHECKPOINT, RunFolder
from kgcf.runs.training_log import log_position
from kgcf.storage import writing
from kgcf.training.loop import Listener

MEMORY_FILES = (MEMORY, BLEND)
LEAST_TRIPLES = 100  # of validation; with fewer nobody can tell whether memory helps
LONG_EPOCH = 10.0  # seconds
MOST_OPERATIONS = 1e15  # of an epoch, some hours of two cores; beyond, `auto` does without


def open_recall(folder: RunFolder) -> Recall | None:
    """The memory of a finished run; None where it has none, or does not use it."""
    if not folder.sealed(BLEND):
        return None
    blend = read_blend(folder.file(BLEND))
    return Recall(Memory.open(folder.file(MEMORY)), blend) if blend.used else None


def memory_stage(
    folder: RunFolder,
    data: Dataset,
    settings: Settings,
    bind: Bind,
    listener: Listener,
    say: Say = quiet,
    without: str = "",
) -> Recall | None:
    """Train a memory and fit its blend, or go on where a stop came between; None where memory is not used.

    `bind` gives the trained paths on a task. Says what was decided, and why; `without` is why none is wanted.
    """
    if settings.memory.enabled == "off":
        return None
    if folder.file(BLEND).is_file():
        blend = read_blend(folder.file(BLEND))
    else:
        reason = why_without(data, settings) or without
        blend = Blend(used=False, reason=reason) if reason else _make(folder, data, settings, bind, listener, say)
        blend.write(folder.file(BLEND))
    _forget_checkpoint(folder)
    say(blend.reason)
    return Recall(Memory.open(folder.file(MEMORY)), blend) if blend.used else None


def _make(folder: RunFolder, data: Dataset, settings: Settings, bind: Bind, listener: Listener, say: Say) -> Blend:
    chosen = settings.memory
    say(f"memory: ComplEx of rank {chosen.rank}, {chosen.epochs} epochs")
    task = validation_task(data)
    memory = _train(folder, data, settings, task, listener, say)
    limit, seed = chosen.validate_triples, chosen.seed
    asked = 2 * (len(task) if limit is None else min(limit, len(task)))
    with showing("weighing paths and memory", asked) as advance:
        ranks = collect_reciprocal_ranks(with_paths(bind(task)).paths, memory, task, limit, seed, advance)
    blend = fit_blend(ranks, len(data.relations), chosen.enabled, seed, **memory.facts)
    if blend.used:
        memory.save(folder.file(MEMORY))
    return blend


def check_memory(settings: Settings, data: Dataset) -> None:
    """Refuse a memory that must be used and cannot be weighed against paths."""
    if settings.memory.enabled != "on":
        return
    if not len(data.valid):
        raise SettingsError(
            f"memory.enabled cannot be on: {data.name} has no validation triples, which weigh memory against "
            "paths. Give some, or leave memory off."
        )
    if data.validated_elsewhere:
        raise SettingsError(
            f"memory.enabled cannot be on: the validation triples of {data.name}, which weigh memory against paths, "
            "ask about another graph, and memory knows none but the one it was trained on. Leave memory off."
        )


def why_without(data: Dataset, settings: Settings) -> str | None:
    """Why a run whose memory is not off does without, as a sentence; None where one is to be trained."""
    chosen, count = settings.memory, len(data.valid)
    if chosen.enabled == "on":
        check_memory(settings, data)
        return None
    if data.inductive:
        return "Memory is off: test asks about another graph, and memory knows none but the one it was trained on."
    if count < LEAST_TRIPLES:
        few = f"{count} validation triples are too few to tell whether it helps ({LEAST_TRIPLES} would do)"
        return f"Memory is off: {few}." + (" --set memory.enabled=on uses one anyway." if count else "")
    if count_operations(data.graph, chosen) > MOST_OPERATIONS:
        return (
            "Memory is off: an epoch would take hours on a graph of this size. "
            "Switch it on with --set memory.enabled=on, perhaps with a smaller memory.rank."
        )
    return None


def _train(folder: RunFolder, data: Dataset, settings: Settings, task: Split, listener: Listener, say: Say) -> Memory:
    """Train, or go on from the checkpoint."""
    relations = np.zeros(2 * len(data.relations), dtype=bool)
    relations[data.graph.edge_relations] = True
    trainer = MemoryTrainer(
        data.graph,
        settings.memory,
        checkpoint=folder.file(MEMORY_CHECKPOINT),
        key=_key(data, settings),
        checkpoint_seconds=settings.training.checkpoint_seconds,
        on_step=_heard(folder, listener),
        on_epoch=lambda entry: _tell(entry, settings.memory.epochs, say),
    )
    known = trainer.questions.known
    trainer.validate = _validation(task, settings, known, relations)
    if folder.file(MEMORY_CHECKPOINT).is_file():
        trainer.resume()
    model = trainer.run()
    progress = trainer.progress
    facts = {"epochs": progress.history, "best_validation_mrr": progress.best, "best_epoch": progress.best_epoch}
    return Memory(model, known, relations, facts)


def _heard(folder: RunFolder, listener: Listener) -> OnStep:
    """Who watches hears of every step; the log has a line once a minute."""
    minutes = Minutes(partial(log_position, folder, "memory"))

    def step(done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        minutes.at(done, total)
        listener.step(done, total, epoch, means)

    return step


def _validation(
    task: Split, settings: Settings, known: NDArray[np.int64], relations: NDArray[np.bool_]
) -> Callable[[ComplEx], float]:
    """The filtered MRR of a memory on validation triples, both sides."""
    triples, limit = task.queries, settings.memory.validate_triples
    if limit is not None and limit < len(triples):
        drawn = np.random.default_rng(settings.memory.seed).choice(len(triples), size=limit, replace=False)
        triples = triples[np.sort(drawn)]

    def validate(model: ComplEx) -> float:
        scorer = MemoryScorer(Memory(model, known, relations), task.observed.entity_count)
        ranks = rank_answers(scorer, task, triples, settings.training.memory_gb * 1e9)
        return float((1 / ranks.realistic).mean())

    return validate


def _tell(entry: dict[str, float], epochs: int, say: Say) -> None:
    """Say what an epoch came to, if it took long or was the last; dozens of quick ones tell nobody anything."""
    if entry["seconds"] >= LONG_EPOCH or entry["epoch"] == epochs:
        say(_line(entry))


def _line(entry: dict[str, float]) -> str:
    validated = f"  validation MRR {entry['validation_mrr']:.4f}" if "validation_mrr" in entry else ""
    terms = f"tails {entry['tails']:.4f}  relations {entry['relations']:.4f}"
    speed = f"{entry['queries_per_second']:,.0f} answers/s"
    return f"memory, epoch {entry['epoch']:.0f}  {terms}  {speed}{validated}  {entry['seconds']:.0f} s"


def _key(data: Dataset, settings: Settings) -> str:
    """What a checkpoint of the memory depends on: the train graph and the memory's settings."""
    text = data.graph.fingerprint + json.dumps(settings.memory.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _forget_checkpoint(folder: RunFolder) -> None:
    """The memory is in the run, or not wanted: its checkpoint, three times its size, goes."""
    path = folder.file(MEMORY_CHECKPOINT)
    with writing(path):
        path.unlink(missing_ok=True)
