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
    positions = generator.integers(0, np.maximum(free, 1)[:, None], (len(heads), count))
    return _at_free_places(positions, begin, end, graph.edge_tails, possible), possible


@kernel
def _at_free_places(
    positions: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    tails: NDArray[np.int32],
    possible: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """The p-th entity that is not a known tail: p plus the number of known tails before it.

    Known tails are ascending, so tail i has tails[i] − i free entities before it; a binary search finds
    how many tails stand before place p.
    """
    found = np.zeros_like(positions)
    for b in range(len(positions)):
        if not possible[b]:
            continue
        for k in range(positions.shape[1]):
            low, high = np.int64(0), end[b] - begin[b]
            while low < high:
                middle = (low + high) // 2
                if tails[begin[b] + middle] - middle <= positions[b, k]:
                    low = middle + 1
                else:
                    high = middle
            found[b, k] = positions[b, k] + low
    return found
