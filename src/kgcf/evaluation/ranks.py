"""Ranks of the true answers among all entities, both sides, filtered; each (head, relation) is scored once."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Split
from kgcf.errors import KgcfError
from kgcf.machine import memory_bound as bound
from kgcf.machine.compiled import kernel
from kgcf.progress import Advance, silent
from kgcf.scoring import PartedScorer, Scorer

TAIL, HEAD = 0, 1


@dataclass(frozen=True, eq=False)
class Ranks:
    """One entry for every query: Q triples, asked for their tail and then for their head (2Q)."""

    triples: NDArray[np.int32] = field(repr=False)  # [Q, 3] the triples asked about
    side: NDArray[np.int8] = field(repr=False)  # [2Q] TAIL or HEAD: what was asked for
    better: NDArray[np.int64] = field(repr=False)  # [2Q] candidates that score higher than the answer
    equal: NDArray[np.int64] = field(repr=False)  # [2Q] other candidates that score the same
    candidates: NDArray[np.int64] = field(repr=False)  # [2Q] not filtered, the answer included

    @property
    def optimistic(self) -> NDArray[np.float64]:
        """[2Q] ranks with the answer first among its ties."""
        return self.better.astype(np.float64) + 1

    @property
    def pessimistic(self) -> NDArray[np.float64]:
        """[2Q] ranks with the answer last among its ties."""
        return (self.better + self.equal).astype(np.float64) + 1

    @property
    def realistic(self) -> NDArray[np.float64]:
        """[2Q] the mean of the two: what a random order of the ties gives on average."""
        return self.better + self.equal / 2 + 1.0

    @property
    def relations(self) -> NDArray[np.int32]:
        """[2Q] the relation of every query, never an inverse one."""
        return np.tile(self.triples[:, 1], 2)


def rank_answers(
    scorer: Scorer,
    split: Split,
    triples: NDArray[np.int32] | None = None,
    memory: float = bound.DEFAULT,
    advance: Advance = silent,
) -> Ranks:
    """Rank the tails and heads of the split's queries (or of some `triples`) among all N entities.

    Known truths other than the answer are left out of the ranking. Scores are asked for in chunks that fit their
    share of the `memory` bound, in bytes; `advance` is told how many queries are done.
    """

    def score(heads: NDArray[np.int64], relations: NDArray[np.int64]) -> tuple[NDArray[np.float32], ...]:
        return (scorer.score_tails(heads, relations),)

    return _rank(score, 1, split, triples, memory, advance)[0]


def rank_parts(
    scorer: PartedScorer,
    split: Split,
    triples: NDArray[np.int32] | None = None,
    memory: float = bound.DEFAULT,
    advance: Advance = silent,
) -> list[Ranks]:
    """The same for every part of a scorer and, last, for the whole, in one go."""
    return _rank(scorer.score_parts, len(scorer.parts) + 1, split, triples, memory, advance)


def _rank(
    score: Callable[[NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.float32], ...]],
    tables: int,
    split: Split,
    triples: NDArray[np.int32] | None,
    memory: float,
    advance: Advance,
) -> list[Ranks]:
    asked = split.queries if triples is None else triples
    count = split.observed.relation_count
    heads = np.concatenate([asked[:, 0], asked[:, 2]]).astype(np.int64)
    relations = np.concatenate([asked[:, 1], asked[:, 1] + count]).astype(np.int64)
    answers = np.concatenate([asked[:, 2], asked[:, 0]]).astype(np.int64)
    queries, row = np.unique(heads * (2 * count) + relations, return_inverse=True)
    order = np.argsort(row, kind="stable")
    results = np.empty((tables, 3, len(row)), dtype=np.int64)
    rows = max(1, bound.questions_at_once(memory, split.observed.entity_count) // tables)
    for first in range(0, len(queries), rows):
        chunk = queries[first : first + rows]
        asked_heads, asked_relations = chunk // (2 * count), chunk % (2 * count)
        here = order[np.searchsorted(row[order], first) : np.searchsorted(row[order], first + len(chunk))]
        known = split.known.tail_ranges(heads[here], relations[here])
        for table, scores in enumerate(score(asked_heads, asked_relations)):
            checked = _checked(scores, asked_heads, asked_relations, split)
            results[table][:, here] = _count(checked, row[here] - first, answers[here], split.known.edge_tails, *known)
        advance(len(here))
    side = np.repeat(np.array([TAIL, HEAD], dtype=np.int8), len(asked))
    return [Ranks(asked, side, *counts) for counts in results]


def _checked(
    given: NDArray[np.float32], heads: NDArray[np.int64], relations: NDArray[np.int64], split: Split
) -> NDArray[np.float32]:
    """Scores of the right shape, none of them NaN."""
    scores = np.ascontiguousarray(given, dtype=np.float32)
    if scores.shape != (len(heads), split.observed.entity_count):
        raise KgcfError(
            f"The scorer gave scores of shape {scores.shape}, not {(len(heads), split.observed.entity_count)}."
        )
    if np.isnan(scores).any():
        b = int(np.flatnonzero(np.isnan(scores).any(axis=1))[0])
        raise KgcfError(
            f"The scorer gave NaN for head {heads[b]}, relation {relations[b]}; its ranks would mean nothing."
        )
    return scores


@kernel
def _count(
    scores: NDArray[np.float32],
    rows: NDArray[np.int64],
    answers: NDArray[np.int64],
    known_tails: NDArray[np.int32],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
) -> NDArray[np.int64]:
    """[3, Q] better, equal and admissible candidates: count over everything, then take the known truths back."""
    counts = np.empty((3, len(rows)), np.int64)
    for q in range(len(rows)):
        line = scores[rows[q]]
        own = line[answers[q]]
        better, equal, candidates = 0, 0, len(line)
        for value in line:
            better += value > own
            equal += value == own
        own_known = False
        for position in range(begin[q], end[q]):
            better -= line[known_tails[position]] > own
            equal -= line[known_tails[position]] == own
            candidates -= 1
            own_known |= known_tails[position] == answers[q]
        if own_known:
            candidates += 1
        else:
            equal -= 1
        counts[0, q], counts[1, q], counts[2, q] = better, equal, candidates
    return counts
