"""The most likely missing triples of one entity, on either side of its relations, on the scale of `complete`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.answers import Answers, Found, name_answers
from kgcf.prediction.calibration.completed_links import GIVEN, CompletionCalibration
from kgcf.prediction.calibration.fitting import UNCALIBRATED
from kgcf.prediction.completion import Sides, new_links

_AT_ONCE = 8  # questions that are ranked before somebody may say stop
_SCORED_AT_ONCE = 32  # triples that are scored before somebody may


@dataclass(frozen=True, eq=False)
class _Links:
    """Triples, each in its own direction."""

    triples: NDArray[np.int64]  # [A, 3]
    logits: NDArray[np.float64]  # [A] as answers to the question that found them
    turned: NDArray[np.bool_]  # [A] whether that was a question for the head
    reached: NDArray[np.bool_]  # [A] by a path; the others memory alone proposes


def missing_links(
    observed: AnsweringGraph,
    entity: int,
    calibration: CompletionCalibration,
    top: int = 10,
    attend: Callable[[], None] = lambda: None,
) -> Answers:
    """The `top` likeliest new triples with the entity at one end; `attend` is called between two pieces of work.

    Asked are (entity, r, ?) and (?, r, entity) for the relations that have the entity on that side; candidates were
    seen on the other. A triple has the probability that `complete` would give it: that of its tail question.
    """
    asked = np.unique(observed.graph.edge_relations[slice(*observed.graph.offsets[entity : entity + 2])])
    parts = [_Links(np.zeros((0, 3), dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))]
    for first in range(0, len(asked), _AT_ONCE):
        attend()
        relations = asked[first : first + _AT_ONCE].astype(np.int64)
        found = observed.score_supported(np.full(len(relations), entity), relations)
        for relation, row, reach, support in zip(relations.tolist(), *found, strict=True):
            parts.append(_best(observed, entity, relation, row, reach, support, top))
    triples, logits, turned, reached = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("triples", "logits", "turned", "reached")
    )
    supported = np.ones(len(triples), dtype=bool)
    logits[turned], reached[turned], supported[turned] = _tail_logits(observed, triples[turned], attend)
    probabilities = calibration.probabilities(logits, triples[:, 1])  # both ends were seen: a relation is a group
    order = np.lexsort((-logits, -probabilities))
    order = order[supported[order]][:top]
    everyone = np.ones(len(order), dtype=bool)
    ranks = np.arange(1, len(order) + 1)
    best = Found(triples[order], triples[order, 1], ranks, logits[order], ~everyone, reached[order], ~reached[order])
    given = UNCALIBRATED.given if calibration.curve is None else GIVEN
    return Answers(
        replace(answer, probability=p, probability_from=calibration.method, probability_given=given)
        for answer, p in zip(name_answers(observed, best), probabilities[order].tolist(), strict=True)
    )


def _tail_logits(
    observed: AnsweringGraph, triples: NDArray[np.int64], attend: Callable[[], None]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """[A] the logits of triples as answers to (head, relation, ?); whether a path reaches them, or memory has a say."""
    logits, support = np.empty(len(triples)), np.empty((2, len(triples)), dtype=bool)
    for first in range(0, len(triples), _SCORED_AT_ONCE):
        attend()
        part = slice(first, first + _SCORED_AT_ONCE)
        heads, relations, tails = triples[part].T
        found = observed.answer_logits(heads, relations, tails[:, None])
        logits[part] = found.logits[:, 0]
        support[:, part] = found.reached[:, 0], found.supported[:, 0]
    return logits, support[0], support[1]


def _best(
    observed: AnsweringGraph,
    entity: int,
    relation: int,
    scores: NDArray[np.float32],
    reached: NDArray[np.bool_],
    supported: NDArray[np.bool_],
    top: int,
) -> _Links:
    """The best new triples of one question of the entity."""
    count = observed.graph.relation_count
    sides = Sides.of(observed.graph, relation % count)
    turned = relation >= count
    if turned:
        sides = Sides(relation, sides.tails, sides.heads)
    ends = new_links(observed.graph, sides, entity, supported, "seen")
    if turned:
        ends = ends[ends != entity]  # a self-loop is an answer to the question that is not turned
    ends = ends[np.argsort(-scores[ends], kind="stable")[:top]]
    own = np.full(len(ends), entity)
    heads, tails = (ends, own) if turned else (own, ends)
    triples = np.stack([heads, np.full(len(ends), relation % count), tails], axis=1)
    return _Links(triples, scores[ends].astype(np.float64), np.full(len(ends), turned), reached[ends])
