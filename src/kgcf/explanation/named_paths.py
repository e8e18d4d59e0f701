"""Paths with names instead of numbers: every edge with its direction and its treatments, and what the path does."""

from dataclasses import dataclass

from kgcf.data.vocabulary import Named
from kgcf.explanation.counterfactual import EdgeTable
from kgcf.explanation.outcome import PathEffect
from kgcf.explanation.paths import Path, PathEdge
from kgcf.prediction.observed_graph import ObservedGraph


@dataclass(frozen=True)
class NamedEdge:
    """One edge as the path travels it; `inverse`: the triple itself is (tail, relation, head)."""

    head: Named
    relation: Named
    inverse: bool
    tail: Named
    importance: float
    factual_treatment: bool | None = None  # T^F under the edge's own relation; None: not asked for
    counterfactual_treatment: bool | None = None

    @property
    def arrow(self) -> str:
        """`—relation→`, or `←relation—` for an edge that is travelled against its direction."""
        return f"←{self.relation.shown}—" if self.inverse else f"—{self.relation.shown}→"


@dataclass(frozen=True)
class NamedPath:
    """A path from the entity asked about to the answer."""

    weight: float  # mean or sum of the edges' importance
    edges: tuple[NamedEdge, ...]
    effect: PathEffect | None = None  # None: the model was not asked, as for a control

    def __str__(self) -> str:
        return " ".join([self.edges[0].head.shown, *(f"{edge.arrow} {edge.tail.shown}" for edge in self.edges)])


def name_path(
    observed: ObservedGraph, path: Path, treatments: EdgeTable, effect: PathEffect | None = None
) -> NamedPath:
    """A path of the observed graph as people read it; edges without an entry among the treatments have none."""
    return NamedPath(path.weight, tuple(_name_edge(observed, edge, treatments) for edge in path.edges), effect)


def _name_edge(observed: ObservedGraph, edge: PathEdge, treatments: EdgeTable) -> NamedEdge:
    count = observed.graph.relation_count
    own = treatments.get((edge.head, edge.relation, edge.tail))
    return NamedEdge(
        head=observed.entities.named(edge.head),
        relation=observed.relations.named(edge.relation % count),
        inverse=edge.relation >= count,
        tail=observed.entities.named(edge.tail),
        importance=edge.importance,
        factual_treatment=None if own is None else own.factual,
        counterfactual_treatment=None if own is None else own.counterfactual,
    )
