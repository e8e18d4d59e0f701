"""What a memory costs: operations of an epoch, counted; seconds of an epoch, measured on a few steps."""

import time

import numpy as np
import torch

from kgcf.data.graph import KnowledgeGraph
from kgcf.memory.complex_model import ComplEx
from kgcf.memory.gradients import differentiate
from kgcf.memory.questions import Questions
from kgcf.memory.settings import MemorySettings

LEAST_RANK = 16  # a smaller one remembers next to nothing


def count_operations(graph: KnowledgeGraph, settings: MemorySettings) -> float:
    """Floating-point operations of one epoch: three products of rows × entities × 2D, and the relations' own."""
    questions = Questions.of(graph)
    width = 2 * settings.rank
    tails = 6.0 * questions.row_count(settings.answers) * len(questions.known) * width
    relations = 6.0 * len(questions.groups) * 2 * graph.relation_count * width
    return tails + (relations if settings.relation_weight > 0 else 0.0)


def estimate_epoch_seconds(graph: KnowledgeGraph, settings: MemorySettings, steps: int = 3) -> float:
    """Seconds that one epoch at this rank takes here and now, from the median of a few steps; the first warms up."""
    questions = Questions.of(graph)
    count = len(questions.known)
    model = ComplEx.draw(count, graph.relation_count, settings.rank, settings.init, settings.seed)
    generator = np.random.default_rng(settings.seed)
    measured = []
    with torch.no_grad():
        for number, rows in enumerate(questions.steps(settings.answers, settings.batch_size, generator)):
            started = time.perf_counter()
            gradient = differentiate(model, rows, settings.n3, settings.relation_weight)
            model.entities.addcdiv_(gradient.entities, gradient.entities.square().sqrt_().add_(1.0), value=-0.0)
            measured.append(time.perf_counter() - started)
            if number == steps:
                break
    step = float(np.median(measured[1:] or measured or [0.0]))
    return step * questions.step_count(settings.answers, settings.batch_size)


def fit_to_time(graph: KnowledgeGraph, settings: MemorySettings, seconds: float) -> MemorySettings | None:
    """The same settings with the rank that lets all epochs end within memory's share of a run's `seconds`.

    The rank is at most the one of the settings. Where a rank of 16 takes too long, epochs are given up, to a third;
    where that is too long as well, None.
    """
    seconds *= settings.share
    small = settings.model_copy(update={"rank": min(settings.rank, LEAST_RANK)})
    least = estimate_epoch_seconds(graph, small)
    if least * settings.epochs > seconds:
        epochs = int(seconds / least)
        return small.model_copy(update={"epochs": epochs}) if 3 * epochs >= settings.epochs else None
    if small.rank == settings.rank:
        return small
    most = estimate_epoch_seconds(graph, settings)
    slope = max(most - least, 1e-9) / (settings.rank - small.rank)
    rank = small.rank + int((seconds / settings.epochs - least) / slope)
    return settings.model_copy(update={"rank": max(small.rank, min(rank, settings.rank))})
