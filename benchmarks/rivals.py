"""The paths that compete to explain an answer: by re-scoring, by two kinds of gradients, the shortest, random ones."""

from collections.abc import Iterator, Sequence

import numpy as np

from kgcf.explanation.case import Case
from kgcf.explanation.explainer import find_paths
from kgcf.explanation.how import How
from kgcf.explanation.necessity import ValueOf, choose_paths, drop_and_gain, try_candidates
from kgcf.explanation.paths import Path, find_best_paths

RIVALS = ("gradient", "integrated", "shortest")
TOP = 5
KEPT = 20  # paths of a rival, so that it has edges enough
_MOST_DRAWS = 200
VALUES: dict[str, ValueOf] = {
    "removal": drop_and_gain,
    "drop alone": lambda s: s.drops,
    "gain alone": lambda s: s.gains,
}


def removal_paths(case: Case, top: int = TOP, rule: str = "removal") -> tuple[Path, ...]:
    """The paths that an explanation shows, or would show by another value."""
    if rule == "removal":
        return find_paths(case, How(top=top, check=False)).paths
    tried = try_candidates(case, How().candidates)
    return tuple(tried.paths[i] for i in choose_paths(case, tried, top, value_of=VALUES[rule]))


def rival_paths(case: Case, name: str, count: int = KEPT) -> tuple[Path, ...]:
    """The best paths of a rival that needs no re-scoring."""
    if name == "shortest":
        return case.shortest_paths(count)
    values = case.integrated.values if name == "integrated" else case.importance.values
    return find_best_paths(case.lattice, values, count).paths


def edges_of(paths: Sequence[Path]) -> frozenset[int]:
    """The distinct triples of paths."""
    return frozenset(triple for path in paths for triple in path.triples)


def at_least(paths: Sequence[Path], edges: int) -> frozenset[int]:
    """The triples of the first paths that have at least so many together, or of all."""
    taken = frozenset[int]()
    for path in paths:
        if len(taken) >= edges:
            break
        taken |= {*path.triples}
    return taken


def random_edges(case: Case, like: Sequence[Path], generator: np.random.Generator) -> frozenset[int]:
    """The triples of random paths of the same lengths, again and again until there are at least as many."""
    wanted, taken = len(edges_of(like)), frozenset[int]()
    for drawn in _draws(case, like, generator):
        if len(taken) >= wanted:
            break
        taken |= {*drawn.triples}
    return taken


def _draws(case: Case, like: Sequence[Path], generator: np.random.Generator) -> Iterator[Path]:
    for i in range(_MOST_DRAWS):
        drawn = case.random_paths.draw(len(like[i % len(like)]), generator)
        if drawn is not None:
            yield drawn
