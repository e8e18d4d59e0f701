"""Strict negatives: entities that are no known tail of the query, each with the same probability."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
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


def draw_reached(
    graph: KnowledgeGraph,
    heads: NDArray[np.int64],
    relations: NDArray[np.int64],
    count: int,
    hops: int,
    hidden: HiddenTriples,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """[B, K] strict negatives drawn with replacement among what the head reaches in so many hops; −1 where nothing is.

    Every query walks the graph without its own hidden triples. Where other links are hidden later, those of
    negatives, a drawn entity may have lost its path.
    """
    begin, end = graph.tail_ranges(heads, relations)
    shares = generator.random((len(heads), count))
    links = _Links(graph.offsets, graph.edge_tails, graph.edge_triples, len(graph))
    return _draw_reached(links, heads, begin, end, hops, hidden.offsets, hidden.triples, shares)


class _Links(NamedTuple):
    """The graph's table of edges, as kernels take it."""

    offsets: NDArray[np.int64]  # [N + 1]
    tails: NDArray[np.int32]  # [2E]
    triples: NDArray[np.int32]  # [2E]
    triple_count: int


@kernel
def _draw_reached(
    links: _Links,
    heads: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    hops: int,
    hidden_offsets: NDArray[np.int64],
    hidden_triples: NDArray[np.int32],
    shares: NDArray[np.float64],
) -> NDArray[np.int64]:
    """For every query the entities that are reached and not known, one for every share in [0, 1)."""
    entity_count = len(links.offsets) - 1
    met = np.full(entity_count, -1, np.int64)
    known = np.full(entity_count, -1, np.int64)
    queue = np.empty(entity_count, np.int32)
    found = np.full(shares.shape, -1, np.int64)
    for b in range(len(heads)):
        hidden = hidden_triples[hidden_offsets[b] : hidden_offsets[b + 1]]
        reached = _walk(links, heads[b], hops, hidden, met, b, queue)
        for tail in links.tails[begin[b] : end[b]]:
            known[tail] = b
        free = 0
        for entity in queue[:reached]:
            if known[entity] != b:
                queue[free] = entity
                free += 1
        if free:
            for k in range(shares.shape[1]):
                found[b, k] = queue[np.int64(shares[b, k] * free)]
    return found


@kernel
def _walk(
    links: _Links,
    head: int,
    hops: int,
    hidden: NDArray[np.int32],
    met: NDArray[np.int64],
    stamp: int,
    queue: NDArray[np.int32],
) -> int:
    """Fill the queue with what the head reaches without the hidden triples, the head first; how many these are."""
    queue[0], met[head] = head, stamp
    first, last = 0, 1
    for _ in range(hops):
        stop = last
        for position in range(first, stop):
            entity = queue[position]
            for edge in range(links.offsets[entity], links.offsets[entity + 1]):
                v = links.tails[edge]
                if met[v] != stamp and not _contains(hidden, links.triples[edge] % links.triple_count):
                    met[v] = stamp
                    queue[last] = v
                    last += 1
        first = stop
    return last


@kernel
def _contains(ascending: NDArray[np.int32], value: int) -> bool:
    """Whether a value is among ascending ones, by bisection."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low < len(ascending) and ascending[low] == value


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
