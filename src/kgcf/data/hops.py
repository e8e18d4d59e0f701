"""How far a graph reaches: entities within k hops, and how many hops lie between the ends of a query."""

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, hide_nothing
from kgcf.machine.compiled import kernel


def count_within(graph: KnowledgeGraph, starts: NDArray[np.integer], hops: int) -> NDArray[np.int64]:
    """[B, hops] entities within 1, 2, … hops of every start, over edges in both directions, the start included."""
    begin = np.ascontiguousarray(starts, dtype=np.int64)
    return _count_within(graph.offsets, graph.edge_tails, begin, graph.entity_count, hops)


def distances(
    graph: KnowledgeGraph, pairs: NDArray[np.integer], hops: int, hidden: HiddenTriples | None = None
) -> NDArray[np.int64]:
    """[B] hops between the two entities of every pair [B, 2], or `hops` + 1 if there are more (or no path).

    With `hidden` every pair walks the graph without its own hidden triples.
    """
    ends = np.ascontiguousarray(pairs, dtype=np.int64)
    unseen = hide_nothing(len(ends)) if hidden is None else hidden
    return _distances(
        graph.offsets,
        graph.edge_tails,
        graph.edge_triples,
        ends,
        unseen.offsets,
        unseen.triples,
        graph.entity_count,
        len(graph),
        hops,
    )


@kernel
def _count_within(
    offsets: NDArray[np.int64],
    edge_tails: NDArray[np.int32],
    starts: NDArray[np.int64],
    entity_count: int,
    hops: int,
) -> NDArray[np.int64]:
    """Breadth-first from every start; stamps instead of clearing."""
    stamps = np.full(entity_count, -1, np.int64)
    queue = np.empty(entity_count, np.int64)
    counts = np.zeros((len(starts), hops), np.int64)
    for b in range(len(starts)):
        stamps[starts[b]] = b
        queue[0] = starts[b]
        first, last = 0, 1
        for k in range(hops):
            end = last
            for place in range(first, end):
                for edge in range(offsets[queue[place]], offsets[queue[place] + 1]):
                    v = edge_tails[edge]
                    if stamps[v] != b:
                        stamps[v] = b
                        queue[last] = v
                        last += 1
            first = end
            counts[b, k] = last
    return counts


@kernel
def _distances(
    offsets: NDArray[np.int64],
    edge_tails: NDArray[np.int32],
    edge_triples: NDArray[np.int32],
    pairs: NDArray[np.int64],
    hidden_offsets: NDArray[np.int64],
    hidden_triples: NDArray[np.int32],
    entity_count: int,
    triple_count: int,
    hops: int,
) -> NDArray[np.int64]:
    """Breadth-first from both ends, the smaller side first, until they meet; side s of pair b stamps 2b + s."""
    stamps = np.full(entity_count, -1, np.int64)
    queues = np.empty((2, entity_count), np.int64)
    result = np.full(len(pairs), hops + 1, np.int64)
    unseen = np.full(triple_count, -1, np.int64)
    for b in range(len(pairs)):
        for triple in hidden_triples[hidden_offsets[b] : hidden_offsets[b + 1]]:
            unseen[triple] = b
        if pairs[b, 0] == pairs[b, 1]:
            result[b] = 0
            continue
        first, last = np.zeros(2, np.int64), np.ones(2, np.int64)
        for s in range(2):
            stamps[pairs[b, s]] = 2 * b + s
            queues[s, 0] = pairs[b, s]
        met, walked = False, 0
        while walked < hops and not met:
            s = 0 if last[0] - first[0] <= last[1] - first[1] else 1
            if last[s] == first[s]:
                break
            end = last[s]
            for place in range(first[s], end):
                for edge in range(offsets[queues[s, place]], offsets[queues[s, place] + 1]):
                    if unseen[edge_triples[edge] % triple_count] == b:
                        continue
                    v = edge_tails[edge]
                    if stamps[v] == 2 * b + 1 - s:
                        met = True
                    elif stamps[v] != 2 * b + s:
                        stamps[v] = 2 * b + s
                        queues[s, last[s]] = v
                        last[s] += 1
            first[s] = end
            walked += 1
        if met:
            result[b] = walked
    return result
