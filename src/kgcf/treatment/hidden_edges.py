"""From the hidden triples of a query to the edges that are gone from its relation's simple graph."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.compiled import kernel
from kgcf.data.hidden import HiddenTriples
from kgcf.treatment.simple_graphs import SimpleGraphs


@dataclass(frozen=True, eq=False)
class HiddenEdges:
    """For each of B queries the edges of one group of `SimpleGraphs` that are gone; each query on its own."""

    offsets: NDArray[np.int64]  # [B + 1] first entry of every query
    edges: NDArray[np.int32]  # ascending within a query

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, queries: NDArray[np.int64]) -> "HiddenEdges":
        """The edges of some queries only."""
        counts = np.diff(self.offsets)[queries]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        shifts = np.repeat(self.offsets[queries] - offsets[:-1], counts)
        return HiddenEdges(offsets, self.edges[np.arange(offsets[-1]) + shifts])


def hide_each_edge(begin: int, end: int) -> HiddenEdges:
    """One query per edge of a range, which hides this edge and nothing else."""
    return HiddenEdges(np.arange(end - begin + 1, dtype=np.int64), np.arange(begin, end, dtype=np.int32))


def find_hidden_edges(graphs: SimpleGraphs, groups: NDArray[np.int64], hidden: HiddenTriples) -> HiddenEdges:
    """The edges of groups [B] all of whose triples are hidden from the query."""
    return HiddenEdges(
        *_find_hidden_edges(
            groups, hidden.offsets, hidden.triples, graphs.triple_edges, graphs.edge_groups, graphs.multiplicity
        )
    )


@kernel
def _find_hidden_edges(
    groups: NDArray[np.int64],
    hidden_offsets: NDArray[np.int64],
    hidden_triples: NDArray[np.int32],
    triple_edges: NDArray[np.int32],
    edge_groups: NDArray[np.int32],
    multiplicity: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    offsets = np.zeros(len(groups) + 1, np.int64)
    edges = np.empty(len(hidden_triples), np.int32)
    count = np.int64(0)
    for b in range(len(groups)):
        begin = count
        for i in range(hidden_offsets[b], hidden_offsets[b + 1]):
            edge = triple_edges[hidden_triples[i]]
            if edge >= 0 and edge_groups[edge] == groups[b]:
                edges[count] = edge
                count += 1
        if count - begin > 1:
            edges[begin:count].sort()
        end, count = count, begin
        while begin < end:  # one run per edge: as long as its multiplicity, or the edge stays
            edge, run = edges[begin], 0
            while begin < end and edges[begin] == edge:
                run += 1
                begin += 1
            if run == multiplicity[edge]:
                edges[count] = edge
                count += 1
        offsets[b + 1] = count
    return offsets, edges[:count].copy()
