"""Connected components and bridges of undirected graphs."""

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.treatment.simple_graphs import Links, SimpleGraphs
from kgcf.machine.compiled import kernel


def component_labels(graphs: SimpleGraphs) -> NDArray[np.int32]:
    """[M] the connected component of every place: 1, 2, … within its group, in the order of their first entity."""
    return _component_labels(graphs.group_offsets, graphs.links)


def find_bridges(graphs: SimpleGraphs) -> NDArray[np.bool_]:
    """[S] whether the removal of an edge separates its two ends."""
    return _find_bridges(graphs.links)


@kernel
def _component_labels(group_offsets: NDArray[np.int64], links: Links) -> NDArray[np.int32]:
    labels = np.zeros(len(links.offsets) - 1, np.int32)
    queue = np.empty(len(labels), np.int32)
    for group in range(len(group_offsets) - 1):
        label = 0
        for root in range(group_offsets[group], group_offsets[group + 1]):
            if labels[root] > 0:
                continue
            label += 1
            labels[root], queue[0] = label, root
            done, waiting = 0, 1
            while done < waiting:
                v = queue[done]
                done += 1
                for j in range(links.offsets[v], links.offsets[v + 1]):
                    x = links.neighbours[j]
                    if labels[x] == 0:
                        labels[x], queue[waiting] = label, x
                        waiting += 1
    return labels


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
