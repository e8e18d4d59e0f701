"""`candidates = observed`: the nearest among given pairs, exact by a bound on half the sum.

If d(h, a) + d(t, b) ≤ s then d(h, a) ≤ s/2 or d(t, b) ≤ s/2. So with s the best sum so far it is enough to look at
the pairs whose head lies within s/2 of h and at those whose tail lies within s/2 of t.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.counterfactual.distances import rounding_error
from kgcf.machine.compiled import kernel

Best = tuple[float, float, int, int]  # sum, its rounding error, places of a and b


@dataclass(frozen=True, eq=False)
class PairIndex:
    """Ordered pairs (a, b), found from either end; A distinct heads and B distinct tails, P pairs."""

    heads: NDArray[np.int64]  # [A] entities, ascending
    tails: NDArray[np.int64]  # [B] entities, ascending
    by_head: NDArray[np.int64]  # [A + 1] first pair of every head
    tail_places: NDArray[np.int64]  # [P] place in `tails` of every pair, sorted by (head, tail)
    by_tail: NDArray[np.int64]  # [B + 1] first pair of every tail
    head_places: NDArray[np.int64]  # [P] place in `heads` of every pair, sorted by (tail, head)

    @classmethod
    def build(cls, heads: NDArray[np.integer], tails: NDArray[np.integer]) -> Self:
        """Index distinct pairs that are sorted by (head, tail)."""
        distinct_heads, head_places = np.unique(heads, return_inverse=True)
        distinct_tails, tail_places = np.unique(tails, return_inverse=True)
        order = np.argsort(tail_places, kind="stable")
        return cls(
            distinct_heads.astype(np.int64),
            distinct_tails.astype(np.int64),
            _starts(head_places, len(distinct_heads)),
            tail_places.astype(np.int64),
            _starts(tail_places, len(distinct_tails)),
            head_places[order].astype(np.int64),
        )


def _starts(positions: NDArray[np.intp], count: int) -> NDArray[np.int64]:
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(positions, minlength=count), out=starts[1:])
    return starts


@kernel
def search_pairs(
    head_rows: NDArray[np.float64],
    tail_rows: NDArray[np.float64],
    queried_heads: NDArray[np.int64],
    queried_tails: NDArray[np.int64],
    by_head: NDArray[np.int64],
    tail_places: NDArray[np.int64],
    by_tail: NDArray[np.int64],
    head_places: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Best pair (places of a and b, −1 where there is none) of every query.

    Query q measures from row queried_heads[q] of head_rows [·, A] and row queried_tails[q] of tail_rows [·, B].
    """
    count = len(queried_heads)
    found_a, found_b = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    distances = np.full(count, np.inf)
    for q in range(count):
        head_row, tail_row = head_rows[queried_heads[q]], tail_rows[queried_tails[q]]
        first_a, first_b = int(np.argmin(head_row)), int(np.argmin(tail_row))
        state: Best = (np.inf, 0.0, -1, -1)
        state = _pairs_of_head(first_a, head_row, tail_row, by_head, tail_places, state)
        state = _pairs_of_tail(first_b, head_row, tail_row, by_tail, head_places, state)
        for i in range(len(head_row)):
            if head_row[i] <= state[0] / 2 and i != first_a:
                state = _pairs_of_head(i, head_row, tail_row, by_head, tail_places, state)
        for j in range(len(tail_row)):
            if tail_row[j] <= state[0] / 2 and j != first_b:
                state = _pairs_of_tail(j, head_row, tail_row, by_tail, head_places, state)
        distances[q], found_a[q], found_b[q] = state[0], state[2], state[3]
    return found_a, found_b, distances


@kernel
def _pairs_of_head(
    i: int,
    head_row: NDArray[np.float64],
    tail_row: NDArray[np.float64],
    by_head: NDArray[np.int64],
    tail_places: NDArray[np.int64],
    state: Best,
) -> Best:
    best, best_error, a, b = state
    value = head_row[i]
    if value == np.inf:
        return state
    for pair in range(by_head[i], by_head[i + 1]):
        j = tail_places[pair]
        total = value + tail_row[j]
        if total < np.inf and total <= best:
            error = rounding_error(value, tail_row[j], total)
            if total < best or error < best_error or (error == best_error and (i < a or (i == a and j < b))):
                best, best_error, a, b = total, error, i, j
    return best, best_error, a, b


@kernel
def _pairs_of_tail(
    j: int,
    head_row: NDArray[np.float64],
    tail_row: NDArray[np.float64],
    by_tail: NDArray[np.int64],
    head_places: NDArray[np.int64],
    state: Best,
) -> Best:
    best, best_error, a, b = state
    value = tail_row[j]
    if value == np.inf:
        return state
    for pair in range(by_tail[j], by_tail[j + 1]):
        i = head_places[pair]
        total = head_row[i] + value
        if total < np.inf and total <= best:
            error = rounding_error(head_row[i], value, total)
            if total < best or error < best_error or (error == best_error and (i < a or (i == a and j < b))):
                best, best_error, a, b = total, error, i, j
    return best, best_error, a, b
