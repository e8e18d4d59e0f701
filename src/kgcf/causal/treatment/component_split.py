"""How the components of a k-core shrink and fall apart when edges go: exact, and mostly local."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.relation_graphs import Links, SimpleGraphs
from kgcf.causal.treatment.components import find_bridges
from kgcf.causal.treatment.hidden_edges import HiddenEdges
from kgcf.causal.treatment.relabelling import NO_LIMIT, Relabelled, with_room
from kgcf.machine.compiled import kernel


class _Core(NamedTuple):
    """The k-core as it is with all its edges."""

    k: int
    links: Links
    labels: NDArray[np.int32]  # [M] the component of every place
    degrees: NDArray[np.int32]  # [M]
    bridges: NDArray[np.bool_]  # [S]
    largest: int  # the largest label


class _Scratch(NamedTuple):
    """Working copies that every query leaves as it found them."""

    degrees: NDArray[np.int32]  # [M]
    removed: NDArray[np.bool_]  # [M] dropped out of the k-core; all False
    hidden: NDArray[np.bool_]  # [S] all False
    touched: NDArray[np.bool_]  # [M] all False
    log: NDArray[np.int32]  # [M] places whose degree fell
    dropped: NDArray[np.int32]  # [M]
    owners: NDArray[np.int32]  # [M] which search found a place; all −1
    found: NDArray[np.int32]  # [M] places in the order in which searches found them
    parents: NDArray[np.int32]  # [M] searches that met: union–find
    pending: NDArray[np.int32]  # [M] places that a search has found and not yet left
    fresh: NDArray[np.int32]  # [M] the new label of a search that found a whole component, else 0
    active: NDArray[np.int32]  # [largest label + 1] searches still apart; all 0


@dataclass(frozen=True, eq=False)
class ComponentSplit:
    """The label is the component of the k-core.

    When edges go, entities of degree below k drop out, and so on. Whatever was separated lies next to something
    that went, so searches start there, side by side, and unite where they meet. A search that ends before it
    meets the others has found a component of its own, which gets a new label; the last one keeps the old label.

    If a single edge that is no bridge goes, and nobody drops out or k ≤ 2, the component stays in one piece:
    what drops out of a 2-core drops as the end of a path. Then there is nothing to search.
    """

    graphs: SimpleGraphs
    core: _Core
    _spare: list[_Scratch] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, graphs: SimpleGraphs, labels: NDArray[np.int32], k: int) -> "ComponentSplit":
        """Split the given k-cores, whose components are known."""
        degrees = np.diff(graphs.links.offsets).astype(np.int32)
        largest = int(labels.max(initial=0))
        return cls(graphs, _Core(k, graphs.links, labels, degrees, find_bridges(graphs), largest))

    def relabel(self, hidden: HiddenEdges, limit: int = NO_LIMIT) -> Relabelled:
        """New components without the hidden edges of every query."""
        scratch = self._borrow()
        found = _split_queries(hidden.offsets, hidden.edges, limit, self.core, scratch)
        self._spare.append(scratch)
        return Relabelled.sorted(self.graphs, *found)

    def _borrow(self) -> _Scratch:
        """A scratch that no other thread holds; it is given back only after a run to the end."""
        try:
            return self._spare.pop()
        except IndexError:
            positions, edges = len(self.core.labels), self.graphs.edge_count
            return _Scratch(
                degrees=self.core.degrees.copy(),
                removed=np.zeros(positions, np.bool_),
                hidden=np.zeros(edges, np.bool_),
                touched=np.zeros(positions, np.bool_),
                log=np.empty(positions, np.int32),
                dropped=np.empty(positions, np.int32),
                owners=np.full(positions, -1, np.int32),
                found=np.empty(positions, np.int32),
                parents=np.empty(positions, np.int32),
                pending=np.empty(positions, np.int32),
                fresh=np.empty(positions, np.int32),
                active=np.zeros(self.core.largest + 1, np.int32),
            )


@kernel
def _lower(v: int, k: int, size: int, count: int, scratch: _Scratch) -> tuple[int, int]:
    """An edge of v is gone: note v in the log, and drop it if its degree is too low; returns both sizes."""
    if not scratch.touched[v]:
        scratch.touched[v] = True
        scratch.log[size] = v
        size += 1
    scratch.degrees[v] -= 1
    if scratch.degrees[v] < k and not scratch.removed[v]:
        scratch.removed[v] = True
        scratch.dropped[count] = v
        count += 1
    return size, count


@kernel
def _drop(edges: NDArray[np.int32], limit: int, core: _Core, scratch: _Scratch) -> tuple[int, int]:
    """Take edges away and peel; returns how many places were touched, and how many dropped (or the limit + 1)."""
    links, size, count, done = core.links, 0, 0, 0
    for edge in edges:
        scratch.hidden[edge] = True
        size, count = _lower(links.ends[edge, 0], core.k, size, count, scratch)
        size, count = _lower(links.ends[edge, 1], core.k, size, count, scratch)
    while done < count and count <= limit:
        w = scratch.dropped[done]
        done += 1
        for j in range(links.offsets[w], links.offsets[w + 1]):
            x = links.neighbours[j]
            if not scratch.removed[x] and not scratch.hidden[links.neighbour_edges[j]]:
                size, count = _lower(x, core.k, size, count, scratch)
    return size, count


@kernel
def _root(search: int, parents: NDArray[np.int32]) -> int:
    while parents[search] != search:
        parents[search] = parents[parents[search]]
        search = int(parents[search])
    return search


@kernel
def _start(size: int, core: _Core, scratch: _Scratch) -> tuple[int, int]:
    """One search from every touched place that is left; returns how many, and how many components have several."""
    searches, several = 0, 0
    for v in scratch.log[:size]:
        if not scratch.removed[v]:
            scratch.owners[v], scratch.found[searches] = searches, v
            scratch.parents[searches], scratch.pending[searches], scratch.fresh[searches] = searches, 1, 0
            scratch.active[core.labels[v]] += 1
            several += scratch.active[core.labels[v]] == 2
            searches += 1
    return searches, several


@kernel
def _expand(v: int, own: int, end: int, core: _Core, scratch: _Scratch) -> tuple[int, int, int]:
    """Leave one place by all its edges; returns its search, the end of `found`, and how many searches were met."""
    links, met = core.links, 0
    for j in range(links.offsets[v], links.offsets[v + 1]):
        x = links.neighbours[j]
        if scratch.removed[x] or scratch.hidden[links.neighbour_edges[j]]:
            continue
        if scratch.owners[x] < 0:
            scratch.owners[x], scratch.found[end] = own, x
            scratch.pending[own] += 1
            end += 1
            continue
        other = _root(scratch.owners[x], scratch.parents)
        if other != own:
            scratch.parents[own] = other
            scratch.pending[other] += scratch.pending[own]
            own = other
            met += 1
    return own, end, met


@kernel
def _search(size: int, limit: int, core: _Core, scratch: _Scratch) -> tuple[int, bool]:
    """Find what was cut off; returns how many places were found, and whether all was found within the limit."""
    searches, several = _start(size, core, scratch)
    done, end, new = 0, searches, 0
    while several > 0 and end - searches <= 32 * limit:
        v = scratch.found[done]
        done += 1
        label = core.labels[v]
        before = scratch.active[label]
        if before < 2:  # all searches of this component but one have met or ended
            continue
        own, end, met = _expand(v, _root(scratch.owners[v], scratch.parents), end, core, scratch)
        scratch.pending[own] -= 1
        scratch.active[label] -= met
        if scratch.pending[own] == 0 and scratch.active[label] > 1:
            new += 1
            scratch.fresh[own] = core.largest + new
            scratch.active[label] -= 1
        several -= scratch.active[label] == 1
    return end, several == 0


@kernel
def _new_label(v: int, scratch: _Scratch) -> int:
    """The label of a place that a search found, if that search found a new component, else 0."""
    return int(scratch.fresh[_root(scratch.owners[v], scratch.parents)])


@kernel
def _restore(edges: NDArray[np.int32], size: int, count: int, end: int, core: _Core, scratch: _Scratch) -> None:
    """Put everything back that one query has changed."""
    for edge in edges:
        scratch.hidden[edge] = False
    for v in scratch.log[:size]:
        scratch.degrees[v], scratch.touched[v] = core.degrees[v], False
        scratch.active[core.labels[v]] = 0
    for v in scratch.dropped[:count]:
        scratch.removed[v] = False
    for v in scratch.found[:end]:
        scratch.owners[v] = -1


@kernel
def _split_queries(
    query_offsets: NDArray[np.int64], edges: NDArray[np.int32], limit: int, core: _Core, scratch: _Scratch
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """For every query: take its edges away, peel, search where needed, note what changed, put everything back."""
    complete = np.ones(len(query_offsets) - 1, np.bool_)
    offsets = np.zeros(len(query_offsets), np.int64)
    positions, labels, total = np.empty(len(edges) + 8, np.int32), np.empty(len(edges) + 8, np.int32), 0
    for b in range(len(complete)):
        own = edges[query_offsets[b] : query_offsets[b + 1]]
        size, count = _drop(own, limit, core, scratch)
        end = 0
        complete[b] = count <= limit
        in_one_piece = len(own) == 1 and not core.bridges[own[0]] and (core.k <= 2 or count == 0)
        if complete[b] and not in_one_piece:
            end, complete[b] = _search(size, limit, core, scratch)
        new = count
        for v in scratch.found[:end]:
            new += _new_label(v, scratch) > 0
        complete[b] = complete[b] and new <= limit
        if complete[b]:
            positions, labels = with_room(positions, total, new), with_room(labels, total, new)
            for v in scratch.dropped[:count]:
                positions[total], labels[total] = v, 0
                total += 1
            for v in scratch.found[:end]:
                if _new_label(v, scratch) > 0:
                    positions[total], labels[total] = v, _new_label(v, scratch)
                    total += 1
        offsets[b + 1] = total
        _restore(own, size, count, end, core, scratch)
    return offsets, positions[:total].copy(), labels[:total].copy(), complete
