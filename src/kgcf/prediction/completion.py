"""`complete`: the most likely missing triples of chosen relations, with bounded memory and a cost estimate."""

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import SettingsError
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.answers import Answers, Found, leave_out_itself, name_answers
from kgcf.prediction.calibration.completed_links import GIVEN, CompletionCalibration, Scope, uncalibrated
from kgcf.prediction.calibration.fitting import UNCALIBRATED
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

    def questions(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """[Q, 2] head and relation of the questions at some places of 0 … question_count − 1, relation by relation."""
        starts = np.cumsum([0, *(len(heads) for heads in self.heads)])
        groups = np.searchsorted(starts, positions, side="right") - 1
        drawn = [self.heads[group][position - starts[group]] for group, position in zip(groups, positions, strict=True)]
        return np.stack([np.array(drawn, dtype=np.int64), self.relations[groups]], axis=1)


def plan_completion(observed: AnsweringGraph, relations: Sequence[str] | None, every_entity: bool) -> CompletionTask:
    """The questions of some relations (all by default): the entities already seen as heads, or every entity."""
    graph = observed.graph
    chosen = np.arange(graph.relation_count) if relations is None else observed.relations.ids(relations, "relation")
    if every_entity:
        return CompletionTask(chosen, every_entity, (np.arange(graph.entity_count),) * len(chosen))
    pairs = np.unique(graph.triples[:, 1] * np.int64(graph.entity_count) + graph.triples[:, 0])
    bounds = np.searchsorted(pairs, np.arange(graph.relation_count + 1) * graph.entity_count)
    heads = tuple(pairs[bounds[r] : bounds[r + 1]] - r * graph.entity_count for r in chosen.tolist())
    return CompletionTask(chosen, every_entity, heads)


def estimate_seconds(observed: AnsweringGraph, task: CompletionTask, sample: int = 16) -> float:
    """What the whole task will take, from a few of its questions drawn evenly; the first call warms up."""
    count = task.question_count
    if not count:
        return 0.0
    drawn = task.questions(np.arange(0, count, max(1, count // sample))[:sample])
    observed.scorer.score_tails(drawn[:2, 0], drawn[:2, 1])
    started = time.perf_counter()
    observed.scorer.score_tails(drawn[:, 0], drawn[:, 1])
    return (time.perf_counter() - started) / len(drawn) * count


@dataclass(frozen=True, eq=False)
class Sides:
    """Which entities a graph has as heads and as tails of a relation."""

    relation: int
    heads: NDArray[np.bool_] = field(repr=False)  # [N]
    tails: NDArray[np.bool_] = field(repr=False)  # [N]

    @classmethod
    def of(cls, graph: KnowledgeGraph, relation: int) -> "Sides":
        """Look through the triples of the relation."""
        masks = np.zeros((2, graph.entity_count), dtype=bool)
        rows = graph.triples[graph.triples[:, 1] == relation]
        masks[0, rows[:, 0]] = True
        masks[1, rows[:, 2]] = True
        return cls(relation, *masks)


def new_links(
    graph: KnowledgeGraph, sides: Sides, head: int, supported: NDArray[np.bool_], scope: Scope
) -> NDArray[np.int64]:
    """The tails that may be proposed for a head: supported, new and, if so wanted, seen there.

    The head itself may be one only where the relation has self-loops (`leave_out_itself`). A candidate that
    no path reaches carries no evidence and is not proposed, unless memory has a say.
    """
    possible = supported & sides.tails if scope == "seen" else supported.copy()
    possible[graph.tails(head, sides.relation)] = False
    leave_out_itself(graph, head, sides.relation, possible)
    return np.flatnonzero(possible)


@dataclass(frozen=True, eq=False)
class RankedLinks:
    """The most likely new triples, best first; A of them."""

    triples: NDArray[np.int64] = field(repr=False)  # [A, 3]
    logits: NDArray[np.float64] = field(repr=False)  # [A]
    probabilities: NDArray[np.float64] = field(repr=False)  # [A]
    reached: NDArray[np.bool_] = field(repr=False)  # [A] by a path; the others memory alone proposes


def complete(
    observed: AnsweringGraph,
    task: CompletionTask,
    top: int,
    min_probability: float = 0.0,
    advance: Advance = silent,
    calibration: CompletionCalibration | None = None,
) -> Answers:
    """The `top` most likely triples that the observed graph does not have, with names.

    Without a calibration the probability is the sigmoid of the logit.
    """
    calibration_in_use = calibration or uncalibrated("all" if task.every_entity else "seen")
    links = rank_links(observed, task, calibration_in_use, top, min_probability, advance)
    everyone = np.ones(len(links.logits), dtype=bool)
    ranks = np.arange(1, len(everyone) + 1)
    found = Found(links.triples, links.triples[:, 1], ranks, links.logits, ~everyone, links.reached, ~links.reached)
    given = UNCALIBRATED.given if calibration_in_use.curve is None else GIVEN
    return Answers(
        replace(answer, probability=probability, probability_from=calibration_in_use.method, probability_given=given)
        for answer, probability in zip(name_answers(observed, found), links.probabilities.tolist(), strict=True)
    )


def rank_links(
    observed: AnsweringGraph,
    task: CompletionTask,
    calibration_in_use: CompletionCalibration,
    top: int,
    min_probability: float = 0.0,
    advance: Advance = silent,
) -> RankedLinks:
    """The `top` new triples by probability, then by logit; those below `min_probability` are cut off.

    Memory holds `top` links and one chunk of scores, whatever the size of the graph.
    """
    scope: Scope = "all" if task.every_entity else "seen"
    if calibration_in_use.scope != scope:
        raise SettingsError(
            f"This calibration is for candidates '{calibration_in_use.scope}', and '{scope}' are asked about."
        )
    best: list[_Link] = []  # a heap: the worst on top
    for relation, heads in zip(task.relations.tolist(), task.heads, strict=True):
        sides = Sides.of(observed.graph, relation)
        size = min(_CHUNK, observed.questions_at_once)
        for first in range(0, len(heads), size):
            part = heads[first : first + size]
            for found in _promising(observed, part, sides, calibration_in_use, top, best, min_probability):
                if len(best) < top:
                    heapq.heappush(best, found)
                elif found > best[0]:
                    heapq.heapreplace(best, found)
            advance(len(part))
    ranked = sorted(best, reverse=True)
    triples = -np.array([row[2:5] for row in ranked], dtype=np.int64).reshape(-1, 3)
    probabilities, logits = (np.array([row[part] for row in ranked]) for part in (0, 1))
    return RankedLinks(triples, logits, probabilities, np.array([row[5] for row in ranked], dtype=bool))


_Link = tuple[float, float, int, int, int, bool]  # probability, logit, −head, −relation, −tail, reached


def _promising(
    observed: AnsweringGraph,
    heads: NDArray[np.int64],
    sides: Sides,
    calibration_in_use: CompletionCalibration,
    top: int,
    best: list[_Link],
    least: float,
) -> Iterator[_Link]:
    """New, allowed and supported answers of a chunk of questions that may enter the best."""
    relation, asked = sides.relation, np.full(len(heads), sides.relation)
    for row, reach, support, head in zip(*observed.score_supported(heads, asked), heads.tolist(), strict=True):
        tails = new_links(observed.graph, sides, head, support, calibration_in_use.scope)
        groups = calibration_in_use.groups(relation, bool(sides.heads[head]), sides.tails[tails])
        likely = calibration_in_use.probabilities(row[tails].astype(np.float64), groups)
        bar = max(least, best[0][0]) if len(best) >= top else least
        enough = np.flatnonzero(likely >= bar)
        if len(enough) > top:
            enough = enough[np.lexsort((-row[tails[enough]], -likely[enough]))[:top]]
        for position in enough.tolist():
            tail = int(tails[position])
            yield float(likely[position]), float(row[tail]), -head, -relation, -tail, bool(reach[tail])
