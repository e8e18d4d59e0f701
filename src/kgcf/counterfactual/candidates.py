"""The pairs that may stand in for a triple, and their treatment under one relation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.treatment import Treatment

Candidates = Literal["all", "observed"]


@dataclass(frozen=True, eq=False)
class ObservedPairs:
    """The P distinct pairs (h, t), h ≠ t, of the train triples, in their direction, sorted by (h, t)."""

    heads: NDArray[np.int64] = field(repr=False)  # [P]
    tails: NDArray[np.int64] = field(repr=False)  # [P]
    pair_of_triple: NDArray[np.int64] = field(repr=False)  # [E] the pair of every triple, −1 for a self-loop
    triples_by_relation: NDArray[np.int64] = field(repr=False)  # [E] triples sorted by relation
    bounds: NDArray[np.int64] = field(repr=False)  # [R + 1] first of them for every relation

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> Self:
        """Collect the pairs of a graph."""
        heads, relations, tails = graph.triples.astype(np.int64).T.reshape(3, -1)
        keys = heads * graph.entity_count + tails
        distinct = np.unique(keys[heads != tails])
        places = np.searchsorted(distinct, keys)
        places[heads == tails] = -1
        order = np.argsort(relations, kind="stable")
        bounds = np.searchsorted(relations[order], np.arange(graph.relation_count + 1))
        width = max(graph.entity_count, 1)
        return cls(distinct // width, distinct % width, places, order, bounds)

    def __len__(self) -> int:
        return len(self.heads)

    def triples_of(self, relation: int) -> NDArray[np.int64]:
        """The triples of one relation, by index; self-loops are left out."""
        triples = self.triples_by_relation[self.bounds[relation] : self.bounds[relation + 1]]
        return triples[self.pair_of_triple[triples] >= 0]

    def outcomes(self, relation: int) -> NDArray[np.bool_]:
        """[P] A^F of every pair under one relation."""
        linked = np.zeros(len(self), dtype=bool)
        linked[self.pair_of_triple[self.triples_of(relation)]] = True
        return linked

    def treated(
        self, relation: int, labels: NDArray[np.integer], own_left_out: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """[P] T of every pair by labels [N]; a pair that r itself links takes its entry of own_left_out [E]."""
        own = labels[self.heads]
        treated: NDArray[np.bool_] = (own > 0) & (own == labels[self.tails])
        if own_left_out is not None:
            triples = self.triples_of(relation)
            treated[self.pair_of_triple[triples]] = own_left_out[triples]
        return treated


def left_out_treatments(
    graph: KnowledgeGraph, treatment: Treatment, candidates: Candidates, leave_one_out: bool
) -> NDArray[np.bool_] | None:
    """[E] T of every train triple without its own edge, where candidates need it (DESIGN 2.3)."""
    if not leave_one_out or candidates == "all":
        return None
    return treatment.treated_triples(graph.triples, leave_one_out=True)


def groups(values: NDArray[np.integer], count: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Every value that occurs, with the positions where it does."""
    order = np.argsort(values, kind="stable")
    bounds = np.searchsorted(values[order], np.arange(count + 1))
    for value in range(count):
        if bounds[value] < bounds[value + 1]:
            yield value, order[bounds[value] : bounds[value + 1]]
