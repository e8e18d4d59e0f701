"""A_r: the undirected simple graph of one relation, over the entities that have an edge in it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph


@dataclass(frozen=True, eq=False)
class RelationGraph:
    """The n entities with an edge in A_r and, in local ids 0 … n−1, the neighbours of each, ascending."""

    relation: int
    entities: NDArray[np.int64] = field(repr=False)  # [n] global ids, ascending
    offsets: NDArray[np.int64] = field(repr=False)  # [n + 1] first neighbour of every local entity
    neighbours: NDArray[np.int32] = field(repr=False)  # [2 · edges] local ids

    def __len__(self) -> int:
        return len(self.entities)


def relation_graphs(graph: KnowledgeGraph) -> Iterator[RelationGraph]:
    """A_r of every relation that links two different entities, in the order of relation ids."""
    linked = graph.triples[graph.triples[:, 0] != graph.triples[:, 2]]
    order = np.argsort(linked[:, 1], kind="stable")
    bounds = np.searchsorted(linked[order, 1], np.arange(graph.relation_count + 1))
    for relation in range(graph.relation_count):
        triples = linked[order[bounds[relation] : bounds[relation + 1]]]
        if len(triples):
            yield _simple_graph(relation, triples[:, 0], triples[:, 2])


def _simple_graph(relation: int, heads: NDArray[np.int32], tails: NDArray[np.int32]) -> RelationGraph:
    entities, local = np.unique(np.concatenate([heads, tails]), return_inverse=True)
    sources, targets = local[: len(heads)], local[len(heads) :]
    count = len(entities)
    both = np.concatenate([sources * count + targets, targets * count + sources])
    keys = np.unique(both)  # sorted by (source, target): parallel edges fall together
    offsets = np.searchsorted(keys, np.arange(count + 1) * count)
    return RelationGraph(relation, entities.astype(np.int64), offsets.astype(np.int64), (keys % count).astype(np.int32))
