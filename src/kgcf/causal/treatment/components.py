"""Connected components and bridges of undirected graphs."""

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.relation_graphs import Links, SimpleGraphs
from kgcf.machine.compiled import kernel


def component_labels(graphs: SimpleGraphs) -> NDArray[np.int32]:
    """[M] the connected component of every place: 1, 2, … within its group, in the order of their first entity."""
    from scipy.sparse import csr_array  # slow to import, and seldom needed
    from scipy.sparse.csgraph import connected_components

    links, count = graphs.links, len(graphs.entities)
    linked = csr_array((np.ones(len(links.neighbours), np.int8), links.neighbours, links.offsets), (count, count))
    found = connected_components(linked, directed=False)[1]
    first = np.unique(found, return_index=True)[1]  # [C] the first place of every component
    rank = np.argsort(np.argsort(first))  # scipy does not promise an order
    groups = np.searchsorted(graphs.group_offsets, first, side="right") - 1
    before = np.searchsorted(np.sort(groups), groups)  # components of earlier groups
    labels: NDArray[np.int32] = (rank - before + 1)[found].astype(np.int32)
    return labels


def find_bridges(graphs: SimpleGraphs) -> NDArray[np.bool_]:
    """[S] whether the removal of an edge separates its two ends."""
    return _find_bridges(graphs.links)


@kernel
def _find_bridges(links: Links) -> NDArray[np.bool_]:
    """Depth-first search; the edge down to v is a bridge iff nothing below v reaches above it.

    `lowest[v]` is the earliest place that v and all below it reach by one edge outside the search tree.
    """
    count = len(links.offsets) - 1
    bridges = np.zeros(len(links.ends), np.bool_)
    times, lowest = np.zeros(count, np.int64), np.zeros(count, np.int64)
    path, arrival = np.empty(count, np.int32), np.full(count, -1, np.int32)  # arrival: the tree edge to a place
    following = links.offsets[:-1].copy()  # the next neighbour to look at
    clock = 0
    for root in range(count):
        if times[root] > 0:
            continue
        clock += 1
        times[root] = lowest[root] = clock
        path[0], depth = root, 0
        while depth >= 0:
            v = path[depth]
            if following[v] < links.offsets[v + 1]:
                x, edge = links.neighbours[following[v]], links.neighbour_edges[following[v]]
                following[v] += 1
                if times[x] == 0:
                    clock += 1
                    times[x] = lowest[x] = clock
                    arrival[x] = edge
                    depth += 1
                    path[depth] = x
                elif edge != arrival[v]:
                    lowest[v] = min(lowest[v], times[x])
                continue
            depth -= 1
            if depth >= 0:
                lowest[path[depth]] = min(lowest[path[depth]], lowest[v])
                bridges[arrival[v]] = lowest[v] == times[v]
    return bridges
