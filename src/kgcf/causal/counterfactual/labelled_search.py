"""`candidates = all`: the nearest pair with a wanted treatment among all pairs, exact by labels.

T(a, b) = 1 iff a and b carry the same label. Write d(h, a) + d(t, b) as a sum of a part of a and a part of b.

*Wanted 1.* For one label the best pair is (a₁, b₁), the members nearest to h and to t (h itself and t itself left
out), unless a₁ = b₁. Then a ≠ b forbids that pair, and every other pair of this label has a ≠ a₁ or b ≠ b₁, so
it is not better than (a₂, b₁) or than (a₁, b₂). Two nearest members per label and end are enough.

*Wanted 0.* Give every unlabelled entity a class of its own: then T = 0 iff the classes differ, which includes
a ≠ b. The best pair is (a₁, b₁), the nearest entities of all, unless they share a class. Then every other pair has
a class of a or of b different from that class, so it is not better than (a₂, b₁) or (a₁, b₂), where a₂ and
b₂ are the nearest entities *of another class*. "Nearest" is by (distance, id), hence ties fall to the lowest (a, b):
within each of these cases the ends are chosen independently, and the cases are compared by (sum, a, b).
"""

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.counterfactual.distances import is_better, rounding_error
from kgcf.machine.compiled import kernel


@kernel
def search_same_label(
    head_rows: NDArray[np.float64],
    tail_rows: NDArray[np.float64],
    head_places: NDArray[np.int64],
    tail_places: NDArray[np.int64],
    classes: NDArray[np.int64],
    class_count: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Best treated pair (places of a and b, −1 where there is none) of every query.

    Query q measures from row head_places[q] of head_rows [·, A] and row tail_places[q] of tail_rows [·, A].
    """
    count = len(head_places)
    found_a, found_b = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    distances = np.full(count, np.inf)
    near_a, near_b = np.empty((class_count, 2), np.int64), np.empty((class_count, 2), np.int64)
    for q in range(count):
        head_row, tail_row = head_rows[head_places[q]], tail_rows[tail_places[q]]
        _two_nearest(head_row, classes, near_a)
        _two_nearest(tail_row, classes, near_b)
        best, best_error, a, b = np.inf, 0.0, -1, -1
        for label in range(class_count):
            for i in range(2):
                for j in range(2):
                    one, other = near_a[label, i], near_b[label, j]
                    if i + j == 2 or one < 0 or other < 0 or one == other:
                        continue
                    total = head_row[one] + tail_row[other]
                    error = rounding_error(head_row[one], tail_row[other], total)
                    if is_better(total, error, one, other, best, best_error, a, b):
                        best, best_error, a, b = total, error, one, other
        found_a[q], found_b[q], distances[q] = a, b, best
    return found_a, found_b, distances


@kernel
def search_other_label(
    head_rows: NDArray[np.float64],
    tail_rows: NDArray[np.float64],
    head_places: NDArray[np.int64],
    tail_places: NDArray[np.int64],
    classes: NDArray[np.int64],
    class_count: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Best untreated pair of every query; `classes` give every unlabelled entity a class of its own."""
    count = len(head_places)
    found_a, found_b = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    distances = np.full(count, np.inf)
    near_a, near_b = np.empty(2, np.int64), np.empty(2, np.int64)
    for q in range(count):
        head_row, tail_row = head_rows[head_places[q]], tail_rows[tail_places[q]]
        _nearest_of_two_classes(head_row, classes, near_a)
        _nearest_of_two_classes(tail_row, classes, near_b)
        best, best_error, a, b = np.inf, 0.0, -1, -1
        for i in range(2):
            for j in range(2):
                one, other = near_a[i], near_b[j]
                if i + j == 2 or one < 0 or other < 0 or classes[one] == classes[other]:
                    continue
                total = head_row[one] + tail_row[other]
                error = rounding_error(head_row[one], tail_row[other], total)
                if is_better(total, error, one, other, best, best_error, a, b):
                    best, best_error, a, b = total, error, one, other
        found_a[q], found_b[q], distances[q] = a, b, best
    return found_a, found_b, distances


@kernel
def _two_nearest(row: NDArray[np.float64], classes: NDArray[np.int64], near: NDArray[np.int64]) -> None:
    """near[c] = the two nearest members of class c by (distance, place), −1 where there are fewer."""
    near[:] = -1
    for i in range(len(row)):
        label, value = classes[i], row[i]
        if value == np.inf:
            continue
        if near[label, 0] < 0 or value < row[near[label, 0]]:
            near[label, 1] = near[label, 0]
            near[label, 0] = i
        elif near[label, 1] < 0 or value < row[near[label, 1]]:
            near[label, 1] = i


@kernel
def _nearest_of_two_classes(row: NDArray[np.float64], classes: NDArray[np.int64], near: NDArray[np.int64]) -> None:
    """near = the nearest entity by (distance, place), and the nearest one of any other class."""
    near[:] = -1
    for i in range(len(row)):
        if row[i] < np.inf and (near[0] < 0 or row[i] < row[near[0]]):
            near[0] = i
    if near[0] < 0:
        return
    own = classes[near[0]]
    for i in range(len(row)):
        if row[i] < np.inf and classes[i] != own and (near[1] < 0 or row[i] < row[near[1]]):
            near[1] = i
