"""`predict`: the most likely tails, heads or relations of a question, with what is known about each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data.hidden import hide_triples
from kgcf.errors import SettingsError
from kgcf.prediction.observed import ObservedGraph

UNKNOWN = "?"


@dataclass(frozen=True)
class Answer:
    """One proposed triple."""

    head: str
    relation: str
    tail: str
    rank: int  # among the answers that are not known yet
    logit: float
    probability: float  # the sigmoid of the logit
    known: bool  # already in the observed graph
    reached: bool  # whether any path of at most L edges supports it


@dataclass(frozen=True)
class Question:
    """A triple with one part unknown: None."""

    head: str | None
    relation: str | None
    tail: str | None

    def __post_init__(self) -> None:
        if [self.head, self.relation, self.tail].count(None) != 1:
            raise SettingsError(
                "Give two of --head, --relation and --tail; the third is predicted. "
                "For relations, give --head, --tail and --relation '?'."
            )


def predict(
    observed: ObservedGraph,
    question: Question,
    top: int = 10,
    show_known: bool = False,
    allowed: Sequence[str] | None = None,
) -> list[Answer]:
    """The `top` best answers; known ones are left out unless shown, others only if `allowed`."""
    if question.relation is None:
        return _predict_relations(observed, question, top, show_known)
    given = question.head if question.head is not None else question.tail
    assert given is not None
    head = observed.entities.id(given, "entity")
    relation = observed.relations.id(question.relation, "relation")
    if question.head is None:
        relation += observed.graph.relation_count
    scores = observed.scorer.score_tails(np.array([head]), np.array([relation]))[0]
    known = np.zeros(len(scores), dtype=bool)
    known[observed.graph.tails(head, relation)] = True
    possible = np.ones(len(scores), dtype=bool)
    if allowed is not None:
        possible[:] = False
        possible[observed.entities.ids(allowed, "entity")] = True
    order = np.argsort(-scores, kind="stable")
    order = order[possible[order] & (show_known | ~known[order])][:top]
    ranks = _ranks(scores, known & possible, possible, order)
    logits, reached = observed.logits(np.array([head]), np.array([relation]), order[None, :]) if len(order) else _none()
    return [
        _answer(observed, question, int(e), ranks[i], float(logits[0, i]), bool(known[e]), bool(reached[0, i]))
        for i, e in enumerate(order)
    ]


def score_triples(observed: ObservedGraph, triples: NDArray[np.int64]) -> NDArray[np.float64]:
    """[Q] logits of triples as tail questions; a triple that is in the graph is hidden from its own question."""
    heads, relations, tails = triples.T
    found = np.empty(len(triples))
    for first in range(0, len(triples), 64):
        part = slice(first, first + 64)
        hidden = hide_triples(observed.graph, heads[part], relations[part], tails[part])
        found[part] = observed.logits(heads[part], relations[part], tails[part][:, None], hidden)[0][:, 0]
    return found


def _predict_relations(observed: ObservedGraph, question: Question, top: int, show_known: bool) -> list[Answer]:
    assert question.head is not None
    assert question.tail is not None
    head, tail = (observed.entities.id(name, "entity") for name in (question.head, question.tail))
    count = observed.graph.relation_count
    relations = np.arange(count)
    heads, tails = np.full(count, head), np.full((count, 1), tail)
    logits, reached = observed.logits(heads, relations, tails)
    known = observed.graph.contains(np.stack([heads, relations, tails[:, 0]], axis=1))
    order = np.argsort(-logits[:, 0], kind="stable")
    order = order[show_known | ~known[order]][:top]
    ranks = _ranks(logits[:, 0], known, np.ones(count, dtype=bool), order)
    return [
        _answer(observed, question, int(r), ranks[i], float(logits[r, 0]), bool(known[r]), bool(reached[r, 0]))
        for i, r in enumerate(order)
    ]


def _ranks(
    scores: NDArray[np.floating], known: NDArray[np.bool_], possible: NDArray[np.bool_], order: NDArray[np.int64]
) -> list[int]:
    """Rank of each answer among those not known yet (a known one: where it would stand)."""
    rivals = np.sort(scores[possible & ~known])
    return [int(len(rivals) - np.searchsorted(rivals, scores[e], side="right")) + 1 for e in order]


def _answer(
    observed: ObservedGraph, question: Question, found: int, rank: int, logit: float, known: bool, reached: bool
) -> Answer:
    name = (observed.relations if question.relation is None else observed.entities).display(found)
    head, relation, tail = (
        name if part is None else part for part in (question.head, question.relation, question.tail)
    )
    return Answer(head, relation, tail, rank, logit, sigmoid(logit), known, reached)


def sigmoid(logit: float) -> float:
    """1 / (1 + e^−x), without overflow."""
    return float(1 / (1 + np.exp(-logit))) if logit >= 0 else float(np.exp(logit) / (1 + np.exp(logit)))


def _none() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return np.zeros((1, 0)), np.zeros((1, 0), dtype=bool)
