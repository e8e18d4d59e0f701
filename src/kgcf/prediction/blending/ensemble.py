"""Several runs as one scorer: their scores, on one scale, added with shares that validation chose."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Split
from kgcf.model.all_entities_kernels import put_reached_first
from kgcf.progress import Advance, silent

ROUNDS = 20  # so many times a member's share may grow, if it helps
STEPS = (0.05, 0.1, 0.2, 0.35, 0.5)  # of the whole, by which it grows at the others' cost
FOLDS = 5


class Member(Protocol):
    """One run on an observed graph."""

    def score_supported(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
        """[B, N] scores; whether a path reaches an entity; whether there is any evidence about it."""
        ...


class EnsembleScorer:
    """Σ weight · score of the members; what no member has evidence about stands last."""

    def __init__(self, members: Sequence[Member], weights: Sequence[float], names: Sequence[str]) -> None:
        self._members = tuple(members)
        self._weights = tuple(weights)
        self.parts = tuple(names)

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] scores for ranking."""
        return self.score_parts(heads, relations)[-1]

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[B, N] scores, and whether a path of any member reaches the entity."""
        found = [member.score_supported(heads, relations) for member in self._members]
        return self._sum(found), np.logical_or.reduce([reached for _, reached, _ in found])

    def score_parts(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> tuple[NDArray[np.float32], ...]:
        """[B, N] scores of every member, and last their sum."""
        found = [member.score_supported(heads, relations) for member in self._members]
        return *(scores for scores, _, _ in found), self._sum(found)

    def _sum(
        self, found: Sequence[tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]]
    ) -> NDArray[np.float32]:
        total = np.zeros_like(found[0][0])
        for weight, (scores, _, _) in zip(self._weights, found, strict=True):
            total += np.float32(weight) * scores
        put_reached_first(total, np.logical_or.reduce([supported for _, _, supported in found]))
        return total


class ValidationScores:
    """The scores of all members on some validation questions, held together, and the answers to rank."""

    def __init__(
        self, members: Sequence[Member], task: Split, limit: int, seed: int, advance: Advance = silent
    ) -> None:
        triples = task.queries.astype(np.int64)
        if limit < len(triples):
            triples = triples[np.sort(np.random.default_rng(seed).choice(len(triples), size=limit, replace=False))]
        count = task.observed.relation_count
        heads = np.concatenate([triples[:, 0], triples[:, 2]])
        relations = np.concatenate([triples[:, 1], triples[:, 1] + count])
        answers = np.concatenate([triples[:, 2], triples[:, 0]])
        asked, rows = np.unique(heads * (2 * count) + relations, return_inverse=True)
        self.questions: NDArray[np.int64] = rows  # [A] of every answer
        self._answers = answers
        self._scores = np.empty((len(members), len(asked), task.observed.entity_count), dtype=np.float32)
        for number, member in enumerate(members):
            for first in range(0, len(asked), 64):
                part = asked[first : first + 64]
                self._scores[number, first : first + 64] = member.score_supported(
                    part // (2 * count), part % (2 * count)
                )[0]
                advance(len(part))
        self.scales = [float(max(table.std(), 1e-6)) for table in self._scores]
        for table, scale in zip(self._scores, self.scales, strict=True):
            table /= scale
        self._rivals = [self._possible(task, *divmod(int(key), 2 * count)) for key in asked]

    @staticmethod
    def _possible(task: Split, head: int, relation: int) -> NDArray[np.int64]:
        """Who is ranked against an answer: all entities but the known answers."""
        possible = np.ones(task.observed.entity_count, dtype=bool)
        possible[task.known.tails(head, relation)] = False
        return np.flatnonzero(possible)

    def reciprocal_ranks(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """[A] of every answer if the members' scores are added with these shares."""
        result = np.empty(len(self._answers))
        for place, (row, answer) in enumerate(zip(self.questions, self._answers, strict=True)):
            total = shares.astype(np.float32) @ self._scores[:, row]
            others, own = total[self._rivals[row]], total[answer]
            result[place] = 1 / (1 + (others > own).sum() + ((others == own).sum()) / 2)
        return result


def choose_shares(scores: ValidationScores, count: int, rows: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """[K] shares that sum to 1: the best member, then whichever step of a share helps most, as long as one helps."""

    def mean(shares: NDArray[np.float64]) -> float:
        found = scores.reciprocal_ranks(shares)
        return float((found if rows is None else found[rows]).mean())

    chosen = max(np.eye(count), key=mean)
    best = mean(chosen)
    for _ in range(ROUNDS):
        trials = [(1 - step) * chosen + step * member for member in np.eye(count) for step in STEPS]
        means = [mean(trial) for trial in trials]
        if max(means) <= best:
            break
        best, chosen = max(means), trials[int(np.argmax(means))]
    shares: NDArray[np.float64] = chosen / chosen.sum()
    return shares


def cross_validate_shares(scores: ValidationScores, count: int, seed: int) -> NDArray[np.float64]:
    """[A] the reciprocal rank of every answer under shares that were chosen on other questions."""
    distinct = int(scores.questions.max()) + 1
    folds = (np.random.default_rng(seed).permutation(distinct) % FOLDS)[scores.questions]
    result = np.empty(len(folds))
    for fold in np.unique(folds):
        inside = folds == fold
        result[inside] = scores.reciprocal_ranks(choose_shares(scores, count, ~inside))[inside]
    return result
