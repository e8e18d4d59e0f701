"""Euclidean distances in float64 from differences, and sums of two of them compared without rounding.

Every search takes its distances from here, so that equal vectors give equal distances everywhere, bit for bit.
"""

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel


@kernel
def distance_rows(columns: NDArray[np.float64], queries: NDArray[np.float64]) -> NDArray[np.float64]:
    """[Q, A] distances of the query vectors [Q, D] to the A entities whose vectors are the columns [D, A].

    Squares are added in the order of the dimensions; tiles keep a part of the columns in the cache.
    """
    width, count = columns.shape
    rows = np.empty((len(queries), count), np.float64)
    for begin in range(0, count, 256):
        end = min(begin + 256, count)
        for q in range(len(queries)):
            row = rows[q, begin:end]
            row[:] = 0.0
            for d in range(width):
                value = queries[q, d]
                column = columns[d, begin:end]
                for i in range(end - begin):
                    difference = value - column[i]
                    row[i] += difference * difference
            for i in range(end - begin):
                row[i] = np.sqrt(row[i])
    return rows


@kernel
def exclude(rows: NDArray[np.float64], positions: NDArray[np.int64]) -> None:
    """Put infinity at places[q] of every row q; −1 excludes nothing."""
    for q in range(len(positions)):
        if positions[q] >= 0:
            rows[q, positions[q]] = np.inf


@kernel
def rounding_error(x: float, y: float, total: float) -> float:
    """x + y − total exactly, where total = fl(x + y): (total, error) orders sums as real numbers are ordered."""
    other = total - x
    return (x - (total - other)) + (y - other)


@kernel
def is_better(
    total: float, error: float, a: int, b: int, best: float, best_error: float, best_a: int, best_b: int
) -> bool:
    """Whether the pair (a, b) comes before the best so far: smaller sum, then lower a, then lower b."""
    if total != best:
        return total < best
    if error != best_error:
        return error < best_error
    return a < best_a if a != best_a else b < best_b
