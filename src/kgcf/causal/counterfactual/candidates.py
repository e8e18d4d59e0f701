"""The pairs that may stand in for a triple, and their treatment under one relation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.treatment import Treatment
from kgcf.choices import Candidates as Candidates
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove


@dataclass(frozen=True, eq=False)
class ObservedPairs:
    """The P distinct pairs (h, t), h ≠ t, of the train triples, in their direction, sorted by (h, t)."""

    heads: NDArray[np.int64] = field(repr=False)  # [P]
    tails: NDArray[np.int64] = field(repr=False)  # [P]
    pair_of_triple: NDArray[np.int64] = field(repr=False)  # [E] the pair of every triple, −1 for a self-loop
    turned_pair_of_triple: NDArray[np.int64] = field(repr=False)  # [E] the pair (t, h), −1 where it is none
    triples_by_relation: NDArray[np.int64] = field(repr=False)  # [E] triples sorted by relation
    bounds: NDArray[np.int64] = field(repr=False)  # [R + 1] first of them for every relation

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> Self:
        """Collect the pairs of a graph."""
        heads, relations, tails = graph.triples.astype(np.int64).T.reshape(3, -1)
        keys = heads * graph.entity_count + tails
        distinct = np.unique(keys[heads != tails])
        positions, turned = (_positions(distinct, part) for part in (keys, tails * graph.entity_count + heads))
        order = np.argsort(relations, kind="stable")
        bounds = np.searchsorted(relations[order], np.arange(graph.relation_count + 1))
        width = max(graph.entity_count, 1)
        return cls(distinct // width, distinct % width, positions, turned, order, bounds)

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
        self, relation: int, labels: NDArray[np.integer], left_out: "LeftOut | None" = None
    ) -> NDArray[np.bool_]:
        """[P] T of every pair (a, r, b) by labels [N], or without what a question about it hides."""
        own = labels[self.heads]
        treated: NDArray[np.bool_] = (own > 0) & (own == labels[self.tails])
        if left_out is None:
            return treated
        for member in left_out.relations_like(relation):
            triples = self.triples_of(member)
            treated[self.pair_of_triple[triples]] = left_out.treated[triples]
            if left_out.remove == "pair":
                turned = self.turned_pair_of_triple[triples]
                treated[turned[turned >= 0]] = left_out.treated[triples][turned >= 0]
        return treated


def _positions(distinct: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where keys stand among sorted ones, −1 if nowhere."""
    positions = np.searchsorted(distinct, keys)
    positions[positions == len(distinct)] = 0
    return np.where(distinct[positions] == keys, positions, -1) if len(distinct) else np.full(len(keys), -1)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """T of the train triples, each without what a question about it hides (docs/counterfactuals.md).

    Removing a triple concerns the pair that it links, under its relation. Removing a pair takes all links between a
    and b away, whatever relation and direction they have, so it concerns (a, b) and (b, a), under every relation whose
    labels come from the same graph. Both T and the removal are symmetric: the value of any one link serves them all.
    """

    treated: NDArray[np.bool_] = field(repr=False)  # [E]
    remove: Remove
    groups: NDArray[np.integer] = field(repr=False)  # [R] relations with the same labels

    @classmethod
    def of(cls, graph: KnowledgeGraph, treatment: Treatment, remove: Remove) -> Self:
        """Ask about every triple of the graph."""
        treated = treatment.treated_triples(graph.triples, leave_one_out=True, remove=remove)
        return cls(treated, remove, treatment.labels.groups)

    def relations_like(self, relation: int) -> list[int]:
        """The relations whose triples change T of pairs under this one."""
        if self.remove == "triple":
            return [relation]
        return np.flatnonzero(self.groups == self.groups[relation]).tolist()


def groups(values: NDArray[np.integer], count: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Every value that occurs, with the positions where it does."""
    order = np.argsort(values, kind="stable")
    bounds = np.searchsorted(values[order], np.arange(count + 1))
    for value in range(count):
        if bounds[value] < bounds[value + 1]:
            yield value, order[bounds[value] : bounds[value + 1]]
