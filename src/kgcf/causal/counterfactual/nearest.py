"""The nearest pair with a wanted treatment for many queries of one relation, in pieces that fit the memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.counterfactual.distances import distance_rows, exclude
from kgcf.causal.counterfactual.labelled_search import search_other_label, search_same_label
from kgcf.causal.counterfactual.pair_search import PairIndex, search_pairs

Ints = NDArray[np.integer]
Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # a, b, distance; −1, −1, ∞ where none
PIECE_BYTES = 24 * 2**20  # distances of one piece


class Search(Protocol):
    """Finds the nearest candidate pair of every query (h, t), h and t themselves excluded."""

    def __call__(self, heads: Ints, tails: Ints) -> Found:
        """a, b and the distance of every query."""
        ...


@dataclass(frozen=True, eq=False)
class _Ends:
    """Entities that may stand at one end of a substitute, with their vectors in columns."""

    entities: NDArray[np.int64]  # [A] ascending
    columns: NDArray[np.float64]  # [D, A]

    def rows(self, vectors: NDArray[np.float32], queried: NDArray[np.int64]) -> NDArray[np.float64]:
        """[Q, A] distances from the queried entities; infinity from an entity to itself."""
        rows = distance_rows(self.columns, vectors[queried].astype(np.float64))
        positions = np.searchsorted(self.entities, queried)
        positions[positions == len(self.entities)] = 0
        exclude(rows, np.where(self.entities[positions] == queried, positions, -1))
        return rows


def _ends(vectors: NDArray[np.float32], entities: NDArray[np.int64]) -> _Ends:
    return _Ends(entities, np.ascontiguousarray(vectors[entities].T.astype(np.float64)))


def search_among(vectors: NDArray[np.float32], heads: Ints, tails: Ints) -> Search:
    """Candidates are the given pairs: distinct, sorted by (head, tail), no pair of an entity with itself."""
    index = PairIndex.build(heads, tails)
    if not len(index.heads):
        return _nothing
    kernel_of_piece = _PairKernel(index)
    return _Pieces(vectors, _ends(vectors, index.heads), _ends(vectors, index.tails), kernel_of_piece)


def search_by_label(vectors: NDArray[np.float32], active: NDArray[np.int64], labels: Ints, wanted: bool) -> Search:
    """Candidates are all pairs of different active entities whose labels [N] (0 = none) give the wanted treatment."""
    own = labels[active]
    if wanted:
        members = active[own > 0]
        distinct, classes = np.unique(own[own > 0], return_inverse=True)
        count = len(distinct)
    else:
        members, count = active, 0
        classes = np.where(own > 0, own, -1 - np.arange(len(own)))  # an unlabelled entity is a class of its own
    if len(members) < 2:
        return _nothing
    ends = _ends(vectors, members)
    return _Pieces(vectors, ends, ends, _LabelKernel(classes.astype(np.int64), count, wanted))


@dataclass(frozen=True, eq=False)
class _PairKernel:
    index: PairIndex

    def __call__(
        self,
        head_rows: NDArray[np.float64],
        tail_rows: NDArray[np.float64],
        at_head: NDArray[np.int64],
        at_tail: NDArray[np.int64],
    ) -> Found:
        index = self.index
        return search_pairs(
            head_rows, tail_rows, at_head, at_tail, index.by_head, index.tail_places, index.by_tail, index.head_places
        )


@dataclass(frozen=True, eq=False)
class _LabelKernel:
    classes: NDArray[np.int64]
    count: int
    wanted: bool

    def __call__(
        self,
        head_rows: NDArray[np.float64],
        tail_rows: NDArray[np.float64],
        at_head: NDArray[np.int64],
        at_tail: NDArray[np.int64],
    ) -> Found:
        search = search_same_label if self.wanted else search_other_label
        return search(head_rows, tail_rows, at_head, at_tail, self.classes, self.count)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Runs a search piece by piece: distances of the piece's distinct entities, then its queries."""

    vectors: NDArray[np.float32]
    head_ends: _Ends
    tail_ends: _Ends
    search: Callable[[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]], Found]

    def __call__(self, heads: Ints, tails: Ints) -> Found:
        a, b = np.full(len(heads), -1, np.int64), np.full(len(heads), -1, np.int64)
        distance = np.full(len(heads), np.inf)
        width = len(self.head_ends.entities) + len(self.tail_ends.entities)
        size = max(8, PIECE_BYTES // (8 * width))
        order = _grouped_order(heads, tails)
        for begin in range(0, len(order), size):
            piece = order[begin : begin + size]
            distinct_heads, at_head = np.unique(heads[piece], return_inverse=True)
            distinct_tails, at_tail = np.unique(tails[piece], return_inverse=True)
            place_a, place_b, distance[piece] = self.search(
                self.head_ends.rows(self.vectors, distinct_heads.astype(np.int64)),
                self.tail_ends.rows(self.vectors, distinct_tails.astype(np.int64)),
                at_head.astype(np.int64),
                at_tail.astype(np.int64),
            )
            a[piece] = np.where(place_a >= 0, self.head_ends.entities[place_a], -1)
            b[piece] = np.where(place_b >= 0, self.tail_ends.entities[place_b], -1)
        return a, b, distance


def _grouped_order(heads: Ints, tails: Ints) -> NDArray[np.intp]:
    """Queries that share the end with fewer distinct entities stand together, so that distances are shared."""
    few_heads = len(np.unique(heads)) < len(np.unique(tails))
    return np.lexsort((tails, heads) if few_heads else (heads, tails))


def _nothing(heads: Ints, tails: Ints) -> Found:
    return np.full(len(heads), -1, np.int64), np.full(len(heads), -1, np.int64), np.full(len(heads), np.inf)
