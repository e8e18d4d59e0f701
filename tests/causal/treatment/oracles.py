"""Treatments the slow and obvious way: build the graph of one relation, label it, compare two entities."""

from collections.abc import Hashable, Iterable

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from kgcf.causal.treatment import TreatmentSettings
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples

EXACT = [
    TreatmentSettings(method="core_number"),
    TreatmentSettings(method="collapsed_core"),
    *(TreatmentSettings(method="core_component", k=k) for k in (1, 2, 3, 4)),
]


def relation_graph(graph: KnowledgeGraph, relation: int | None, hidden: Iterable[int] = ()) -> "nx.Graph[int]":
    """A_r, or the graph of all relations, without some triples; only entities with an edge are in it."""
    gone = set(hidden)
    result: nx.Graph[int] = nx.Graph()
    for i, (h, r, t) in enumerate(graph.triples.tolist()):
        if i not in gone and h != t and relation in (None, r):
            result.add_edge(h, t)
    return result


def naive_labels(
    graph: KnowledgeGraph, settings: TreatmentSettings, relation: int, hidden: Iterable[int] = ()
) -> dict[int, Hashable]:
    """The label of every entity that has one, computed from nothing."""
    simple = relation_graph(graph, None if settings.method == "collapsed_core" else relation, hidden)
    if settings.method != "core_component":
        return dict(nx.core_number(simple))
    parts = nx.connected_components(nx.k_core(simple, settings.k))
    return {entity: min(part) for part in parts for entity in part}


def naive_treated(
    graph: KnowledgeGraph, settings: TreatmentSettings, head: int, relation: int, hidden: Iterable[int] = ()
) -> list[bool]:
    """T of one (head, relation) with every entity."""
    labels = naive_labels(graph, settings, relation % graph.relation_count, hidden)
    return [head in labels and e in labels and labels[head] == labels[e] for e in range(graph.entity_count)]


def hide(rows: list[list[int]]) -> HiddenTriples:
    """A hidden set from lists of triple indices, one list per query."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return HiddenTriples(offsets, np.array([i for row in rows for i in sorted(row)], dtype=np.int32))


@st.composite
def graphs_with_hidden(draw: st.DrawFn) -> tuple[KnowledgeGraph, list[list[int]]]:
    """A small graph (dense or sparse, with self-loops and both directions) and hidden triples of five queries."""
    entities = draw(st.integers(1, 9))
    relations = draw(st.integers(1, 3))
    entity, relation = st.integers(0, entities - 1), st.integers(0, relations - 1)
    rows = draw(st.lists(st.tuples(entity, relation, entity), max_size=40))
    graph = KnowledgeGraph.build(np.array(rows, dtype=np.int64).reshape(-1, 3), entities, relations)
    hidden = st.sets(st.integers(0, max(len(graph) - 1, 0)), max_size=min(6, len(graph))).map(sorted)
    return graph, draw(st.lists(hidden, min_size=5, max_size=5))


def clustered_graph(generator: np.random.Generator, clusters: int = 7, size: int = 6) -> KnowledgeGraph:
    """Dense clusters in a tree of bridges and paths, two relations: many cores, and components that fall apart."""
    count = clusters * size
    rows = []
    for c in range(clusters):
        density = generator.uniform(0.4, 1.0)
        for u in range(c * size, (c + 1) * size):
            for v in range(u + 1, (c + 1) * size):
                if generator.random() < density:
                    rows.append((u, 0, v) if generator.random() < 0.5 else (v, 0, u))
                if generator.random() < 0.15:
                    rows.append((v, int(generator.integers(2)), u))
    for c in range(1, clusters):
        other = int(generator.integers(c * size))
        for _ in range(int(generator.integers(1, 3))):
            rows.append((other, 0, int(generator.integers(c * size, (c + 1) * size))))
    rows += [(e, 0, e) for e in range(3)]
    return KnowledgeGraph.build(rows, count + 2, 2)  # two isolated entities
