"""What a memory costs: operations of an epoch, counted; seconds of an epoch, measured on a few steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from kgcf.data.graph import KnowledgeGraph
from kgcf.memory.complex_model import ComplEx
from kgcf.memory.gradients import differentiate
from kgcf.memory.memory import Memory
from kgcf.memory.questions import Questions
from kgcf.memory.settings import MemorySettings

Clock = Callable[[], float]
LEAST_RANK = 16  # a smaller one remembers next to nothing
FASTEST = 1e12  # operations in a second that no machine of ours exceeds
_ASKED = 32  # questions at once


def count_operations(graph: KnowledgeGraph, settings: MemorySettings) -> float:
    """Floating-point operations of one epoch: three products of rows × entities × 2D, and the relations' own."""
    questions = Questions.of(graph)
    width = 2 * settings.rank
    tails = 6.0 * questions.row_count(settings.answers) * len(questions.known) * width
    relations = 6.0 * len(questions.groups) * 2 * graph.relation_count * width
    return tails + (relations if settings.relation_weight > 0 else 0.0)


def estimate_epoch_seconds(
    graph: KnowledgeGraph, settings: MemorySettings, steps: int = 3, clock: Clock = time.perf_counter
) -> float:
    """Seconds that one epoch at this rank takes here and now, from the median of a few steps; the first warms up."""
    questions = Questions.of(graph)
    count = len(questions.known)
    model = ComplEx.draw(count, graph.relation_count, settings.rank, settings.init, settings.seed)
    generator = np.random.default_rng(settings.seed)
    measured = []
    with torch.no_grad():
        for number, rows in enumerate(questions.steps(settings.answers, settings.batch_size, generator)):
            started = clock()
            gradient = differentiate(model, rows, settings.n3, settings.relation_weight)
            model.entities.addcdiv_(gradient.entities, gradient.entities.square().sqrt_().add_(1.0), value=-0.0)
            measured.append(clock() - started)
            if number == steps:
                break
    step = float(np.median(measured[1:] or measured or [0.0]))
    return step * questions.step_count(settings.answers, settings.batch_size)


def estimate_question_seconds(
    graph: KnowledgeGraph, settings: MemorySettings, clock: Clock = time.perf_counter
) -> float:
    """Seconds that memory's opinion of all entities takes here and now, for one question."""
    known, count = np.flatnonzero(graph.degrees), graph.relation_count
    model = ComplEx.draw(len(known), count, settings.rank, settings.init, settings.seed)
    memory = Memory(model, known, np.ones(2 * count, dtype=bool))
    heads, relations = known[np.arange(_ASKED) % len(known)], np.arange(_ASKED) % (2 * count)
    memory.opinions(heads, relations)  # warms up
    started = clock()
    memory.opinions(heads, relations)
    return (clock() - started) / _ASKED


@dataclass(frozen=True)
class Fitted:
    """Settings that end in time, and what they are expected to take."""

    settings: MemorySettings
    seconds: float  # of all epochs, with their validations


def fit_to_time(
    graph: KnowledgeGraph,
    settings: MemorySettings,
    seconds: float,
    *,
    asked: int = 0,
    keep_rank: bool = False,
    keep_epochs: bool = False,
    clock: Clock = time.perf_counter,
) -> Fitted | None:
    """The same settings with the rank that lets all epochs end within memory's share of a run's `seconds`.

    The rank is at most the one of the settings. Where a rank of 16 takes too long, epochs are given up, to a third;
    where that is too long as well, None. `asked` questions validate every epoch; what is to be kept is kept.
    """

    def epoch_at(rank: int) -> float:
        tried = settings.model_copy(update={"rank": rank})
        return estimate_epoch_seconds(graph, tried, clock=clock) + asked * (
            estimate_question_seconds(graph, tried, clock) if asked else 0.0
        )

    seconds *= settings.share
    small = settings.rank if keep_rank else min(settings.rank, LEAST_RANK)
    fewest = settings.epochs if keep_epochs else -(-settings.epochs // 3)
    tried = settings.model_copy(update={"rank": small})
    if count_operations(graph, tried) * fewest > seconds * FASTEST:
        return None  # no need to look how long it takes
    least = epoch_at(small)
    if least * settings.epochs > seconds:
        epochs = int(seconds / least)
        found = tried.model_copy(update={"epochs": epochs})
        return Fitted(found, least * epochs) if epochs >= fewest else None
    if small == settings.rank:
        return Fitted(settings, least * settings.epochs)
    slope = max(epoch_at(settings.rank) - least, 1e-9) / (settings.rank - small)
    rank = small + int((seconds / settings.epochs - least) / slope)
    rank = max(small, min(rank, settings.rank))
    expected = least + slope * (rank - small)
    return Fitted(settings.model_copy(update={"rank": rank}), expected * settings.epochs)
