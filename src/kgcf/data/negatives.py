"""Strict negatives: entities that are no known tail of the query, each with the same probability."""

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.machine.compiled import kernel


def draw_negatives(
    graph: KnowledgeGraph,
    heads: NDArray[np.int64],
    relations: NDArray[np.int64],
    count: int,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """[B, K] negatives drawn with replacement, and [B] whether a query has any; without, its row is all 0."""
    begin, end = graph.tail_ranges(heads, relations)
    free = graph.entity_count - (end - begin)  # [B] entities that are no known tail
    possible: NDArray[np.bool_] = free > 0
    places = generator.integers(0, np.maximum(free, 1)[:, None], (len(heads), count))
    return _at_free_places(places, begin, end, graph.edge_tails, possible), possible


@kernel
def _at_free_places(
    places: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    tails: NDArray[np.int32],
    possible: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """The p-th entity that is not a known tail: p plus the number of known tails before it.

    Known tails are ascending, so tail i has tails[i] − i free entities before it; a binary search finds
    how many tails stand before place p.
    """
    found = np.zeros_like(places)
    for b in range(len(places)):
        if not possible[b]:
            continue
        for k in range(places.shape[1]):
            low, high = np.int64(0), end[b] - begin[b]
            while low < high:
                middle = (low + high) // 2
                if tails[begin[b] + middle] - middle <= places[b, k]:
                    low = middle + 1
                else:
                    high = middle
            found[b, k] = places[b, k] + low
    return found
