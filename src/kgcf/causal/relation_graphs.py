"""A_r: the undirected simple graph of every relation, all of them in one compressed table, or one by one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph


class Links(NamedTuple):
    """Who is linked with whom, in the form that kernels take."""

    offsets: NDArray[np.int64]  # [M + 1] first neighbour of every place
    neighbours: NDArray[np.int32]  # [2S] places, ascending within a row
    neighbour_edges: NDArray[np.int32]  # [2S] the edge that leads to this neighbour
    ends: NDArray[np.int32]  # [S, 2] the lower and the higher place of every edge


@dataclass(frozen=True, eq=False)
class RelationGraph:
    """The n entities with an edge in A_r and, in local ids 0 … n−1, the neighbours of each, ascending."""

    relation: int
    entities: NDArray[np.int64] = field(repr=False)  # [n] global ids, ascending
    offsets: NDArray[np.int64] = field(repr=False)  # [n + 1] first neighbour of every local entity
    neighbours: NDArray[np.int32] = field(repr=False)  # [2 · edges] local ids

    def __len__(self) -> int:
        return len(self.entities)


@dataclass(frozen=True, eq=False)
class SimpleGraphs:
    """The disjoint union of A_g over all groups g of relations; self-loops dropped, parallel triples merged.

    A group is one relation, or all of them when the graph is collapsed. A *place* is an entity inside a
    group, where it has an edge: M places, sorted by (group, entity), so that every group is one range. The
    S edges link places. Several triples may make one edge: (h, r, t) and (t, r, h), or other relations when
    collapsed. The edge is gone when all of them are.
    """

    groups: NDArray[np.int32]  # [R] the group of every relation
    group_offsets: NDArray[np.int64]  # [G + 1] first place of every group
    entities: NDArray[np.int32]  # [M] ascending within a group
    links: Links
    edge_groups: NDArray[np.int32]  # [S]
    multiplicity: NDArray[np.int32]  # [S] triples that make the edge
    triple_edges: NDArray[np.int32]  # [E] the edge of every triple, −1 where it is not in this graph

    @classmethod
    def build(cls, graph: KnowledgeGraph, *, collapsed: bool = False) -> "SimpleGraphs":
        """One group per relation, or one for all relations together."""
        relations = np.arange(graph.relation_count, dtype=np.int32)
        groups = np.zeros_like(relations) if collapsed else relations
        group_count = 1 if collapsed else graph.relation_count
        heads, kinds, tails = graph.triples.astype(np.int64).T
        kept = np.flatnonzero(heads != tails)
        lows = np.minimum(heads, tails)[kept] + groups[kinds[kept]] * np.int64(graph.entity_count)
        highs = np.maximum(heads, tails)[kept] + groups[kinds[kept]] * np.int64(graph.entity_count)
        keys, positions = np.unique(np.concatenate([lows, highs]), return_inverse=True)
        pairs = positions[: len(kept)] * np.int64(max(len(keys), 1)) + positions[len(kept) :]
        edges, edge_of, multiplicity = np.unique(pairs, return_inverse=True, return_counts=True)
        triple_edges = np.full(len(graph), -1, dtype=np.int32)
        triple_edges[kept] = edge_of
        ends = np.stack(np.divmod(edges, max(len(keys), 1)), axis=1)  # [S, 2]
        place_groups, entities = np.divmod(keys, max(graph.entity_count, 1))
        bounds = np.searchsorted(place_groups, np.arange(group_count + 1))
        return cls._linked(groups, bounds, entities, ends, multiplicity, triple_edges)

    @classmethod
    def _linked(
        cls,
        groups: NDArray[np.int32],
        group_offsets: NDArray[np.integer],
        entities: NDArray[np.integer],
        ends: NDArray[np.integer],
        multiplicity: NDArray[np.integer],
        triple_edges: NDArray[np.int32],
    ) -> "SimpleGraphs":
        """List the neighbours of every place, given the edges in the order of their ends."""
        count = len(ends)
        sources = np.concatenate([ends[:, 1], ends[:, 0]])  # lower neighbours stand before higher ones,
        targets = np.concatenate([ends[:, 0], ends[:, 1]])  # and both ascend, so that a stable sort is enough
        order = np.argsort(sources, kind="stable")
        offsets = np.zeros(len(entities) + 1, dtype=np.int64)
        np.cumsum(np.bincount(sources, minlength=len(entities)), out=offsets[1:])
        edge_groups = np.searchsorted(group_offsets, ends[:, 0], side="right") - 1
        links = Links(
            offsets,
            targets[order].astype(np.int32),
            (order % max(count, 1)).astype(np.int32),
            np.ascontiguousarray(ends, dtype=np.int32),
        )
        for part in (*links, triple_edges):
            part.setflags(write=False)
        return cls(
            groups.astype(np.int32),
            group_offsets.astype(np.int64),
            entities.astype(np.int32),
            links,
            edge_groups.astype(np.int32),
            multiplicity.astype(np.int32),
            triple_edges,
        )

    @property
    def edge_count(self) -> int:
        """S, the undirected edges of all groups together."""
        return len(self.edge_groups)

    def part(self, group: int) -> RelationGraph:
        """The graph of one group, its places numbered from 0."""
        begin, end = self.group_offsets[group : group + 2]
        offsets = self.links.offsets[begin : end + 1]
        neighbours = self.links.neighbours[offsets[0] : offsets[-1]] - np.int32(begin)
        return RelationGraph(group, self.entities[begin:end].astype(np.int64), offsets - offsets[0], neighbours)

    def induced(self, keep: NDArray[np.bool_]) -> "SimpleGraphs":
        """The same graphs on a part of the places; triples of edges that fall away belong to no edge."""
        inside = keep[self.links.ends].all(axis=1)
        new_places = np.cumsum(keep) - 1
        new_edges = np.where(inside, np.cumsum(inside) - 1, -1).astype(np.int32)
        triple_edges = np.where(self.triple_edges >= 0, np.append(new_edges, -1)[self.triple_edges], -1)
        bounds = np.concatenate([[0], np.cumsum(keep)])[self.group_offsets]
        return self._linked(
            self.groups,
            bounds,
            self.entities[keep],
            new_places[self.links.ends[inside]],
            self.multiplicity[inside],
            triple_edges.astype(np.int32),
        )


def relation_graphs(graph: KnowledgeGraph) -> Iterator[RelationGraph]:
    """A_r of every relation that links two different entities, in the order of relation ids."""
    graphs = SimpleGraphs.build(graph)
    for relation in np.flatnonzero(np.diff(graphs.group_offsets)):
        yield graphs.part(int(relation))
