"""From the hidden triples of a query to the edges that are gone from its relation's simple graph."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.relation_graphs import SimpleGraphs
from kgcf.data.hiding import HiddenTriples


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
    queries = np.repeat(np.arange(len(groups)), np.diff(hidden.offsets))
    edges = graphs.triple_edges[hidden.triples]
    inside = edges >= 0
    inside[inside] = graphs.edge_groups[edges[inside]] == groups[queries[inside]]
    width = np.int64(max(graphs.edge_count, 1))
    keys, triples = np.unique(queries[inside] * width + edges[inside], return_counts=True)
    rows, found = np.divmod(keys, width)
    removed = triples == graphs.multiplicity[found]
    offsets = np.zeros(len(groups) + 1, np.int64)
    np.cumsum(np.bincount(rows[removed], minlength=len(groups)), out=offsets[1:])
    return HiddenEdges(offsets, found[removed].astype(np.int32))
