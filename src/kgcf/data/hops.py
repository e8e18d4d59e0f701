"""How far a graph reaches: entities within k hops, and how many hops lie between the ends of a query."""

from typing import NamedTuple

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
    links = _Links(graph.offsets, graph.edge_tails, graph.edge_triples, graph.entity_count, len(graph))
    return _distances(links, ends, unseen.offsets, unseen.triples, hops)


class _Links(NamedTuple):
    """The graph's table of edges, as kernels take it."""

    offsets: NDArray[np.int64]  # [N + 1]
    tails: NDArray[np.int32]  # [2E]
    triples: NDArray[np.int32]  # [2E]
    entity_count: int
    triple_count: int


class _Search(NamedTuple):
    """What a search from both ends of a pair remembers; side s of pair b stamps what it met with 2b + s."""

    stamps: NDArray[np.int64]  # [N]
    queues: NDArray[np.int64]  # [2, N] entities in the order in which each side met them
    fronts: NDArray[np.int64]  # [2, 2] where in its queue each side's outermost entities begin and end
    unseen: NDArray[np.int64]  # [E] the last pair that a triple was hidden from


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
            for position in range(first, end):
                for edge in range(offsets[queue[position]], offsets[queue[position] + 1]):
                    v = edge_tails[edge]
                    if stamps[v] != b:
                        stamps[v] = b
                        queue[last] = v
                        last += 1
            first = end
            counts[b, k] = last
    return counts


@kernel
def _spread(links: _Links, search: _Search, b: int, s: int) -> bool:
    """Take side s of pair b one hop further; whether it met the other side."""
    met = False
    begin, end = search.fronts[s]
    last = end
    for position in range(begin, end):
        entity = search.queues[s, position]
        for edge in range(links.offsets[entity], links.offsets[entity + 1]):
            if search.unseen[links.triples[edge] % links.triple_count] == b:
                continue
            v = links.tails[edge]
            if search.stamps[v] == 2 * b + 1 - s:
                met = True
            elif search.stamps[v] != 2 * b + s:
                search.stamps[v] = 2 * b + s
                search.queues[s, last] = v
                last += 1
    search.fronts[s, 0], search.fronts[s, 1] = end, last
    return met


@kernel
def _distances(
    links: _Links,
    pairs: NDArray[np.int64],
    hidden_offsets: NDArray[np.int64],
    hidden_triples: NDArray[np.int32],
    hops: int,
) -> NDArray[np.int64]:
    """Breadth-first from both ends, the smaller side first, until they meet."""
    search = _Search(
        np.full(links.entity_count, -1, np.int64),
        np.empty((2, links.entity_count), np.int64),
        np.empty((2, 2), np.int64),
        np.full(links.triple_count, -1, np.int64),
    )
    result = np.full(len(pairs), hops + 1, np.int64)
    for b in range(len(pairs)):
        if pairs[b, 0] == pairs[b, 1]:
            result[b] = 0
            continue
        for triple in hidden_triples[hidden_offsets[b] : hidden_offsets[b + 1]]:
            search.unseen[triple] = b
        for s in range(2):
            search.stamps[pairs[b, s]] = 2 * b + s
            search.queues[s, 0] = pairs[b, s]
            search.fronts[s, 0], search.fronts[s, 1] = 0, 1
        for walked in range(1, hops + 1):
            one, other = search.fronts[0, 1] - search.fronts[0, 0], search.fronts[1, 1] - search.fronts[1, 0]
            if min(one, other) == 0:
                break
            s = 0 if one <= other else 1
            if _spread(links, search, b, s):
                result[b] = walked
                break
    return result
