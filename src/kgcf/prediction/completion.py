"""`complete`: the most likely missing triples of chosen relations, with bounded memory and a cost estimate."""

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.prediction.answers import Answer, Found, name_answers
from kgcf.prediction.observed import ObservedGraph
from kgcf.progress import Advance, silent

_CHUNK = 64


@dataclass(frozen=True, eq=False)
class CompletionTask:
    """Which questions (h, r, ?) are asked and which tails may answer."""

    relations: NDArray[np.int64]  # relation ids asked about
    every_entity: bool  # whether all entities may stand on both sides, or only those seen there
    heads: tuple[NDArray[np.int64], ...] = field(repr=False)  # per relation, the heads asked about

    @property
    def question_count(self) -> int:
        """Queries to rank."""
        return sum(len(heads) for heads in self.heads)

    def questions(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """[Q, 2] head and relation of the questions at some places of 0 … question_count − 1, relation by relation."""
        starts = np.cumsum([0, *(len(heads) for heads in self.heads)])
        groups = np.searchsorted(starts, places, side="right") - 1
        drawn = [self.heads[group][place - starts[group]] for group, place in zip(groups, places, strict=True)]
        return np.stack([np.array(drawn, dtype=np.int64), self.relations[groups]], axis=1)


def plan_completion(observed: ObservedGraph, relations: Sequence[str] | None, every_entity: bool) -> CompletionTask:
    """The questions of some relations (all by default): the entities already seen as heads, or every entity."""
    graph = observed.graph
    chosen = np.arange(graph.relation_count) if relations is None else observed.relations.ids(relations, "relation")
    if every_entity:
        return CompletionTask(chosen, every_entity, (np.arange(graph.entity_count),) * len(chosen))
    pairs = np.unique(graph.triples[:, 1] * np.int64(graph.entity_count) + graph.triples[:, 0])
    bounds = np.searchsorted(pairs, np.arange(graph.relation_count + 1) * graph.entity_count)
    heads = tuple(pairs[bounds[r] : bounds[r + 1]] - r * graph.entity_count for r in chosen.tolist())
    return CompletionTask(chosen, every_entity, heads)


def estimate_seconds(observed: ObservedGraph, task: CompletionTask, sample: int = 16) -> float:
    """What the whole task will take, from a few of its questions drawn evenly; the first call warms up."""
    count = task.question_count
    if not count:
        return 0.0
    drawn = task.questions(np.arange(0, count, max(1, count // sample))[:sample])
    observed.scorer.score_tails(drawn[:2, 0], drawn[:2, 1])
    started = time.perf_counter()
    observed.scorer.score_tails(drawn[:, 0], drawn[:, 1])
    return (time.perf_counter() - started) / len(drawn) * count


def complete(
    observed: ObservedGraph,
    task: CompletionTask,
    top: int,
    min_probability: float = 0.0,
    advance: Advance = silent,
) -> list[Answer]:
    """The `top` most likely triples that the observed graph does not have, best first.

    A candidate that no path reaches carries no evidence and is not proposed. Memory holds `top` answers
    and one chunk of scores, whatever the size of the graph.
    """
    best: list[tuple[float, int, int, int]] = []  # a heap of (logit, −head, −relation, −tail): the worst on top
    for relation, heads in zip(task.relations.tolist(), task.heads, strict=True):
        allowed = np.ones(observed.graph.entity_count, dtype=bool)
        if not task.every_entity:
            allowed[:] = False
            allowed[_seen(observed.graph.triples, relation, 2)] = True
        size = min(_CHUNK, observed.questions_at_once)
        for first in range(0, len(heads), size):
            part = heads[first : first + size]
            for found in _promising(observed, part, relation, allowed, top, best):
                if len(best) < top:
                    heapq.heappush(best, found)
                elif found > best[0]:
                    heapq.heapreplace(best, found)
            advance(len(part))
    ranked = sorted(best, reverse=True)
    return _answers(observed, ranked, min_probability)


def _promising(
    observed: ObservedGraph,
    heads: NDArray[np.int64],
    relation: int,
    allowed: NDArray[np.bool_],
    top: int,
    best: list[tuple[float, int, int, int]],
) -> Iterator[tuple[float, int, int, int]]:
    """New, allowed and reached answers of a chunk of questions that may enter the best."""
    scores, reached = observed.scorer.score_with_reach(heads, np.full(len(heads), relation))
    bar = best[0][0] if len(best) >= top else -np.inf
    for row, reach, head in zip(scores, reached, heads.tolist(), strict=True):
        possible = allowed & reach & (row >= bar)
        possible[observed.graph.tails(head, relation)] = False
        possible[head] = False
        tails = np.flatnonzero(possible)
        if len(tails) > top:
            tails = tails[np.argpartition(-row[tails], top - 1)[:top]]
        for tail in tails.tolist():
            yield float(row[tail]), -head, -relation, -tail


def _answers(
    observed: ObservedGraph, ranked: list[tuple[float, int, int, int]], min_probability: float
) -> list[Answer]:
    """The ranked triples that are likely enough; probabilities fall with the rank, so these are the first ones."""
    logits = np.array([row[0] for row in ranked])
    reached = np.ones(len(ranked), dtype=bool)
    enough = int((observed.calibration.probabilities(logits, reached) >= min_probability).sum())
    triples = -np.array([row[1:] for row in ranked], dtype=np.int64).reshape(-1, 3)
    ranks = np.arange(1, enough + 1)
    found = Found(triples[:enough], ranks, logits[:enough], np.zeros(enough, dtype=bool), reached[:enough])
    return name_answers(observed, found)


def _seen(triples: NDArray[np.int32], relation: int, side: int) -> NDArray[np.int64]:
    """The entities that stand on one side (0 head, 2 tail) of a relation."""
    return np.unique(triples[triples[:, 1] == relation][:, side]).astype(np.int64)
