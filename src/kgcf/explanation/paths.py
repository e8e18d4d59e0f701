"""Paths from head to tail: the k best by importance, the k shortest, and random ones (paper sec. 5.3)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.choices import Layers as Layers
from kgcf.choices import Weighting as Weighting
from kgcf.errors import SettingsError
from kgcf.explanation.lattice import Lattice
from kgcf.explanation.path_kernels import Slots, best_walks, count_walks, draw_path, search_paths

LIMIT = 1_000_000  # partial paths that a search may keep
_TRIALS = 256  # walks drawn at a time
_ROUNDS = 64  # times that walks are drawn before a random path is given up


@dataclass(frozen=True)
class PathEdge:
    """One edge as it is travelled: from `head` to `tail`; a relation ≥ R is the inverse of r − R."""

    head: int
    relation: int
    tail: int
    layer: int  # 1 … L, its place in the path
    triple: int  # of the graph
    importance: float


@dataclass(frozen=True)
class Path:
    """A simple path of l edges, the i-th in layer i, and its weight: mean or sum of the edges' importance."""

    edges: tuple[PathEdge, ...]
    weight: float

    def __len__(self) -> int:
        return len(self.edges)

    @property
    def triples(self) -> tuple[int, ...]:
        """The graph's triples that the path travels, in order."""
        return tuple(edge.triple for edge in self.edges)


@dataclass(frozen=True)
class FoundPaths:
    """Paths, best first. `bound` is None if they are exactly the best ones, or all there are."""

    paths: tuple[Path, ...]
    bound: float | None = None  # the search stopped early: no path that it missed weighs more

    @property
    def truncated(self) -> bool:
        """Whether a better path may have been missed."""
        return self.bound is not None


def find_best_paths(
    lattice: Lattice, importance: NDArray[np.float64], top: int, weighting: Weighting = "mean", limit: int = LIMIT
) -> FoundPaths:
    """The `top` simple paths of the largest weight; a path ends where it first meets the tail.

    Exact: dynamic programming gives the best walk to every slot of every layer; a best-first search from the tail
    backwards uses it as its bound and drops a partial path when it would visit an entity again. Where that needs
    more than `limit` partial paths, what was found is returned with a bound for the rest.
    """
    if top < 1 or limit < 1:
        raise SettingsError(f"top = {top} and limit = {limit}: ask for at least one path, and allow one to be kept.")
    if weighting not in ("mean", "sum"):
        raise SettingsError(f"There is no weighting called '{weighting}'. Choices: mean, sum.")
    weights = np.ascontiguousarray(importance, dtype=np.float64)
    rows, bound = _search(lattice, weights, top, weighting, limit)
    paths = [_path(lattice, row, weights, weighting) for row in rows]
    paths.sort(key=lambda path: -path.weight)  # sums of floats in another order: equal up to rounding
    return FoundPaths(tuple(paths), bound)


def find_shortest_paths(
    lattice: Lattice, importance: NDArray[np.float64], top: int, weighting: Weighting = "mean"
) -> tuple[Path, ...]:
    """The `top` shortest simple paths, whatever they weigh; among equally long ones the choice is fixed, not random."""
    rows, _ = _search(lattice, np.full(len(importance), -1.0), top, "sum", LIMIT)
    return tuple(_path(lattice, row, importance, weighting) for row in rows)


def _search(
    lattice: Lattice, weights: NDArray[np.float64], top: int, weighting: Weighting, limit: int
) -> tuple[list[NDArray[np.int64]], float | None]:
    """The edges of the best paths, and what the paths left out weigh at most (None: they are no better)."""
    slots = _slots(lattice)
    best = best_walks(slots, weights)
    edges, lengths, bound = search_paths(
        slots, weights, best, lattice.goals, top, weighting == "mean", max(limit, len(lattice.goals))
    )
    rows = [row[:length] for row, length in zip(edges, lengths, strict=True)]
    return rows, None if np.isneginf(bound) else float(bound)


def _slots(lattice: Lattice) -> Slots:
    """The lattice as the kernels take it."""
    return Slots(lattice.entities, lattice.offsets, lattice.sources, lattice.start, lattice.head, lattice.tail)


class RandomPaths:
    """Draws simple paths from head to tail of a given length, each with the same probability."""

    def __init__(self, lattice: Lattice, importance: NDArray[np.float64], weighting: Weighting = "mean") -> None:
        self._lattice = lattice
        self._importance = importance
        self._weighting: Weighting = weighting
        self._slots = _slots(lattice)
        self._counts = count_walks(self._slots)

    def draw(self, length: int, generator: np.random.Generator) -> Path | None:
        """A uniform simple path of `length` edges; None if there is none, or too few among the walks to meet one."""
        lattice = self._lattice
        goal = int(lattice.goals[length])
        if goal < 0 or not self._counts[goal]:
            return None
        for _ in range(_ROUNDS):
            draws = generator.random((_TRIALS, length))
            row = draw_path(self._slots, self._counts, goal, draws)
            if len(row):
                return _path(lattice, row, self._importance, self._weighting)
        return None


def _path(lattice: Lattice, row: NDArray[np.int64], weights: NDArray[np.float64], weighting: Weighting) -> Path:
    """The path that travels these edges of the lattice."""
    ends = [*(int(lattice.entities[lattice.sources[edge]]) for edge in row), lattice.tail]
    edges = tuple(
        PathEdge(
            head=ends[i],
            relation=int(lattice.relations[edge]),
            tail=ends[i + 1],
            layer=int(lattice.layers[edge]),
            triple=int(lattice.triples[edge]),
            importance=float(weights[edge]),
        )
        for i, edge in enumerate(row.tolist())
    )
    total = sum(edge.importance for edge in edges)
    return Path(edges, total / len(edges) if weighting == "mean" else total)
