"""Loop-by-loop matching, and small graphs, spaces and treatments to compare on."""

import math
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.embedding import EntitySpace, SpaceSettings
from kgcf.causal.treatment import assign_treatment
from kgcf.data.graph import KnowledgeGraph


@dataclass(frozen=True, eq=False)
class GivenTreatment:
    """Labels and leave-one-out values made up by a test."""

    graph: KnowledgeGraph
    table: NDArray[np.int32]  # [R, N], 0 = no label
    left_out: NDArray[np.bool_]  # [E]
    fingerprint: str = "given"

    @property
    def settings(self) -> Any:
        return SimpleNamespace(leave_one_out=True)

    @property
    def labels(self) -> Any:
        return SimpleNamespace(dense=lambda relation: self.table[relation], groups=np.arange(len(self.table)))

    def treated_triples(
        self, triples: NDArray[np.integer], leave_one_out: bool = False, remove: str = "triple"
    ) -> NDArray[np.bool_]:
        assert remove == "triple", "made-up values know no other links"
        result = np.zeros(len(triples), dtype=bool)
        for i, (h, r, t) in enumerate(np.asarray(triples)):
            result[i] = self.table[r, h] > 0 and self.table[r, h] == self.table[r, t]
            edge = self.graph.find_edges([h], [r], [t])[0]
            if leave_one_out and edge >= 0:
                result[i] = self.left_out[self.graph.edge_triples[edge] % len(self.graph)]
        return result


def random_case(seed: int, lattice: bool) -> tuple[KnowledgeGraph, EntitySpace, Any]:
    """A graph with self-loops, parallel edges and isolated entities; a lattice space is full of ties."""
    rng = np.random.default_rng(seed)
    n, r, e = int(rng.integers(2, 12)), int(rng.integers(1, 4)), int(rng.integers(1, 40))
    triples = np.stack([rng.integers(0, n, e), rng.integers(0, r, e), rng.integers(0, n, e)], axis=1)
    graph = KnowledgeGraph.build(triples, n + int(rng.integers(0, 3)), r)
    shape = (graph.entity_count, int(rng.integers(1, 4)))
    vectors = rng.integers(-1, 2, shape) if lattice else rng.normal(size=shape)
    labels = rng.integers(0, int(rng.integers(1, 5)), (r, graph.entity_count))
    treatment = GivenTreatment(graph, labels.astype(np.int32), rng.random(len(graph)) < 0.5)
    return graph, space_of(vectors), treatment


def space_of(vectors: NDArray[Any]) -> EntitySpace:
    return EntitySpace(np.asarray(vectors, dtype=np.float32), SpaceSettings(), "")


def distance(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    total = 0.0
    for x, y in zip(one.tolist(), other.tolist(), strict=True):
        total += (x - y) * (x - y)
    return math.sqrt(total)


def treated_by_rebuilding(
    triple: tuple[int, int, int], graph: KnowledgeGraph, treatment: Any, left_out: bool, remove: str, candidate: bool
) -> bool:
    """T of a triple; where links have to go, on a graph built without them. Made-up treatments know their own way.

    `pair` takes away every link between the ends of a candidate, and of a triple asked about that is known.
    """
    h, _, t = triple
    asked = np.array([triple])
    if remove == "triple" or not left_out or not (candidate or graph.contains(asked)[0]):
        return bool(treatment.treated_triples(asked, leave_one_out=left_out)[0])
    ends = {h, t}
    links = [row for row in graph.triples.tolist() if {row[0], row[2]} == ends]
    if not links:
        return bool(treatment.treated_triples(asked)[0])
    return bool(assign_treatment(graph.without(links), treatment.settings).treated_triples(asked)[0])


def match_by_loops(
    query: tuple[int, int, int],
    graph: KnowledgeGraph,
    space: EntitySpace,
    treatment: Any,
    candidates: str,
    leave_one_out: bool,
    remove: str = "triple",
) -> tuple[int, int, float]:
    """(a, b, distance) by the definition: every pair, sums compared as fractions, ties to the lowest (a, b)."""
    h, r, t = query
    swap = r >= graph.relation_count
    if swap:
        h, r, t = t, r - graph.relation_count, h
    own = treated_by_rebuilding((h, r, t), graph, treatment, leave_one_out, remove, candidate=False)
    linked = {(int(x), int(y)) for x, _, y in graph.triples}
    best: tuple[Fraction, int, int] | None = None
    for a in range(graph.entity_count):
        for b in range(graph.entity_count):
            if a in (h, b) or b == t or not graph.degrees[a] or not graph.degrees[b]:
                continue
            if candidates == "observed" and (a, b) not in linked:
                continue
            left_out = leave_one_out and candidates == "observed"
            if treated_by_rebuilding((a, r, b), graph, treatment, left_out, remove, candidate=True) == own:
                continue
            parts = distance(space.vectors[h], space.vectors[a]), distance(space.vectors[t], space.vectors[b])
            key = (Fraction(parts[0]) + Fraction(parts[1]), a, b)
            best = key if best is None else min(best, key)
    if best is None:
        return -1, -1, math.inf
    a, b = (best[2], best[1]) if swap else (best[1], best[2])
    return a, b, float(best[0])
