"""Strict negatives: entities that are no known tail of the query, drawn uniformly or near the head.

Ranking goes wrong among entities a few hops from the head, which a uniform draw from a large graph hardly ever
meets. So a share of the negatives may be the ends of short random walks.
"""

import numpy as np
from numpy.typing import NDArray

from kgcf.compiled import kernel
from kgcf.data.graph import KnowledgeGraph


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


def draw_near_negatives(
    graph: KnowledgeGraph,
    heads: NDArray[np.int64],
    relations: NDArray[np.int64],
    answers: NDArray[np.int64],
    uniform: NDArray[np.int64],
    longest: int,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """[B, K] ends of random walks of 1 … `longest` edges from the heads, each length as likely.

    Where a walk ends in a known tail, the draw stays `uniform` [B, K]. No walk uses a link between head and
    answer: what is hidden from the query must not choose its negatives.
    """
    begin, end = graph.tail_ranges(heads, relations)
    lengths = generator.integers(1, longest + 1, uniform.shape)
    steps = generator.random((*uniform.shape, longest))
    return _walk(graph.offsets, graph.edge_tails, heads, answers, begin, end, lengths, steps, uniform)


@kernel
def _walk(
    offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    heads: NDArray[np.int64],
    answers: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    lengths: NDArray[np.int64],
    steps: NDArray[np.float64],
    uniform: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Walk edge by edge; a step along a forbidden link is not taken."""
    found = uniform.copy()
    for b in range(len(heads)):
        known = tails[begin[b] : end[b]]  # ascending
        for k in range(uniform.shape[1]):
            here = heads[b]
            for i in range(lengths[b, k]):
                degree = offsets[here + 1] - offsets[here]
                if degree == 0:
                    break
                there = np.int64(tails[offsets[here] + np.int64(steps[b, k, i] * degree)])
                forth = here == heads[b] and there == answers[b]
                back = here == answers[b] and there == heads[b]
                if not (forth or back):
                    here = there
            place = np.searchsorted(known, here)
            if place == len(known) or known[place] != here:
                found[b, k] = here
    return found
