"""Which paths are tried: the best by gradient, the best by integrated gradients, and the shortest."""

from kgcf.explanation.case import Case
from kgcf.explanation.paths import Path, find_best_paths


def find_candidates(case: Case, count: int) -> tuple[Path, ...]:
    """The union of the `count` best paths of each kind, none twice; the shortest first, so that ties go to them.

    Every kind finds paths that the others miss: gradients are blind where the model is saturated, integrated
    gradients see what carries much, and the shortest paths need no model at all.
    """
    values = case.importance.values
    kinds = (
        case.shortest_paths(count),
        find_best_paths(case.lattice, case.integrated.values, count).paths,
        find_best_paths(case.lattice, values, count).paths,
    )
    found: dict[frozenset[int], Path] = {}
    for path in (path for paths in kinds for path in paths):
        found.setdefault(frozenset(path.triples), path)
    return tuple(sorted(found.values(), key=len))
