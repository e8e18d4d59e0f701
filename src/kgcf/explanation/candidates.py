"""Which paths are tried: the best by gradient, the best by integrated gradients, and the shortest."""

import numpy as np
from numpy.typing import NDArray

from kgcf.explanation.case import Case
from kgcf.explanation.lattice import Lattice
from kgcf.explanation.paths import Path, find_best_paths, find_shortest_paths


def find_candidates(case: Case, count: int) -> tuple[Path, ...]:
    """The candidates of a case, at most `count` of each kind."""
    return gather_candidates(case.lattice, case.importance.values, case.integrated.values, count)


def gather_candidates(
    lattice: Lattice, gradient: NDArray[np.float64], integrated: NDArray[np.float64], count: int
) -> tuple[Path, ...]:
    """The union of the `count` best paths of each kind, none twice; short ones first, so that ties go to them.

    Every kind finds paths that the others miss: gradients are blind where the model is saturated, integrated
    gradients see what carries much, and the shortest paths need no model at all.
    """
    kinds = (
        find_shortest_paths(lattice, gradient, count),
        find_best_paths(lattice, integrated, count).paths,
        find_best_paths(lattice, gradient, count).paths,
    )
    found: dict[frozenset[int], Path] = {}
    for path in (path for paths in kinds for path in paths):
        found.setdefault(frozenset(path.triples), path)
    return tuple(sorted(found.values(), key=len))
