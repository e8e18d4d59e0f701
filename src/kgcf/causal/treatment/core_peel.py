"""Core numbers, and how they fall when edges go: an exact local peel."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.relation_graphs import Links, SimpleGraphs
from kgcf.causal.treatment.hidden_edges import HiddenEdges
from kgcf.causal.treatment.relabelling import NO_LIMIT, Relabelled, with_room
from kgcf.machine.compiled import kernel


class _Scratch(NamedTuple):
    """Working copies that every query leaves as it found them."""

    cores: NDArray[np.int32]  # [M]
    supports: NDArray[np.int32]  # [M]
    hidden: NDArray[np.bool_]  # [S] all False
    touched: NDArray[np.bool_]  # [M] all False
    log: NDArray[np.int32]  # [M] places that were touched
    queue: NDArray[np.int32]  # [M] places that dropped


@dataclass(frozen=True, eq=False)
class CorePeel:
    """The label is the core number k(v): the largest k such that v lies in a subgraph of minimum degree k.

    The *support* of v is the number of its neighbours with a core number ≥ k(v). When the edge {u, v} goes,
    core numbers drop by at most 1, and only those that equal k = min(k(u), k(v)): an entity drops when its
    support falls below k, which takes one support from each neighbour with core number k, and so on. What
    is left at k has k neighbours left at k or above, so the result is exact. Several edges go one by one.
    """

    graphs: SimpleGraphs
    cores: NDArray[np.int32]  # [M]
    supports: NDArray[np.int32]  # [M]
    _spare: list[_Scratch] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, graphs: SimpleGraphs, cores: NDArray[np.int32]) -> "CorePeel":
        """Peel graphs whose core numbers are known."""
        return cls(graphs, cores, _supports(graphs.links, cores))

    def relabel(self, hidden: HiddenEdges, limit: int = NO_LIMIT) -> Relabelled:
        """New core numbers without the hidden edges of every query."""
        scratch = self._borrow()
        found = _peel_queries(
            hidden.offsets, hidden.edges, limit, self.graphs.links, self.cores, self.supports, scratch
        )
        self._spare.append(scratch)
        return Relabelled.sorted(self.graphs, *found)

    def _borrow(self) -> _Scratch:
        """A scratch that no other thread holds; it is given back only after a peel that ran to its end."""
        try:
            return self._spare.pop()
        except IndexError:
            count = len(self.cores)
            return _Scratch(
                self.cores.copy(),
                self.supports.copy(),
                np.zeros(self.graphs.edge_count, np.bool_),
                np.zeros(count, np.bool_),
                np.empty(count, np.int32),
                np.empty(count, np.int32),
            )


def core_numbers(graphs: SimpleGraphs) -> NDArray[np.int32]:
    """[M] the core number of every place in the graph of its group; at least 1, for a place has an edge."""
    return _core_numbers(graphs.links)


@kernel
def _core_numbers(links: Links) -> NDArray[np.int32]:
    """Remove the place of lowest degree again and again; `order` keeps the places sorted by degree."""
    offsets, count = links.offsets, len(links.offsets) - 1
    degrees = np.empty(count, np.int32)
    starts = np.zeros(count + 2, np.int64)  # where the places of each degree begin in the order
    for v in range(count):
        degrees[v] = offsets[v + 1] - offsets[v]
        starts[degrees[v] + 1] += 1
    for degree in range(count + 1):
        starts[degree + 1] += starts[degree]
    order, position, filled = np.empty(count, np.int32), np.empty(count, np.int64), starts.copy()
    for v in range(count):
        position[v] = filled[degrees[v]]
        order[position[v]] = v
        filled[degrees[v]] += 1
    for i in range(count):
        v = order[i]
        for j in range(offsets[v], offsets[v + 1]):
            u = links.neighbours[j]
            if degrees[u] > degrees[v]:  # u becomes the first of its degree, and that degree begins after it
                first = starts[degrees[u]]
                other = order[first]
                order[first], order[position[u]] = u, other
                position[other], position[u] = position[u], first
                starts[degrees[u]] = first + 1
                degrees[u] -= 1
    return degrees


@kernel
def _supports(links: Links, cores: NDArray[np.int32]) -> NDArray[np.int32]:
    supports = np.zeros(len(cores), np.int32)
    for v in range(len(cores)):
        for j in range(links.offsets[v], links.offsets[v + 1]):
            supports[v] += cores[links.neighbours[j]] >= cores[v]
    return supports


@kernel
def _take_support(v: int, k: int, size: int, waiting: int, scratch: _Scratch) -> tuple[int, int]:
    """One supporter of v is gone: note v in the log, and queue it if it drops; returns both sizes."""
    if not scratch.touched[v]:
        scratch.touched[v] = True
        scratch.log[size] = v
        size += 1
    scratch.supports[v] -= 1
    if scratch.supports[v] < k:
        scratch.cores[v] = k - 1
        scratch.queue[waiting] = v
        waiting += 1
    return size, waiting


@kernel
def _peel_edge(edge: int, limit: int, size: int, links: Links, scratch: _Scratch) -> tuple[int, int]:
    """Take one edge away; returns the size of the log and how many dropped (above the limit: given up)."""
    cores, supports, hidden, queue = scratch.cores, scratch.supports, scratch.hidden, scratch.queue
    hidden[edge] = True
    u, v = links.ends[edge, 0], links.ends[edge, 1]
    k = min(cores[u], cores[v])
    u_lower, v_lower = cores[u] == k, cores[v] == k
    done, waiting = 0, 0
    if u_lower:
        size, waiting = _take_support(u, k, size, waiting, scratch)
    if v_lower:
        size, waiting = _take_support(v, k, size, waiting, scratch)
    while done < waiting and waiting <= limit:
        w = queue[done]
        done += 1
        supports[w] = 0
        for j in range(links.offsets[w], links.offsets[w + 1]):
            x = links.neighbours[j]
            if hidden[links.neighbour_edges[j]]:
                continue
            supports[w] += cores[x] >= k - 1
            if cores[x] == k:
                size, waiting = _take_support(x, k, size, waiting, scratch)
    return size, waiting


@kernel
def _peel_queries(
    query_offsets: NDArray[np.int64],
    edges: NDArray[np.int32],
    limit: int,
    links: Links,
    cores: NDArray[np.int32],
    supports: NDArray[np.int32],
    scratch: _Scratch,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """For every query: peel its edges one by one, note what changed, put everything back."""
    complete = np.ones(len(query_offsets) - 1, np.bool_)
    offsets = np.zeros(len(query_offsets), np.int64)
    positions, labels, count = np.empty(len(edges) + 8, np.int32), np.empty(len(edges) + 8, np.int32), 0
    for b in range(len(complete)):
        size = 0
        for i in range(query_offsets[b], query_offsets[b + 1]):
            size, dropped = _peel_edge(edges[i], limit, size, links, scratch)
            if dropped > limit:
                complete[b] = False
                break
        positions, labels = with_room(positions, count, size), with_room(labels, count, size)
        for v in scratch.log[:size]:
            if complete[b] and scratch.cores[v] != cores[v]:
                positions[count], labels[count] = v, scratch.cores[v]
                count += 1
            scratch.cores[v], scratch.supports[v], scratch.touched[v] = cores[v], supports[v], False
        offsets[b + 1] = count
        for i in range(query_offsets[b], query_offsets[b + 1]):
            scratch.hidden[edges[i]] = False
    return offsets, positions[:count].copy(), labels[:count].copy(), complete
