"""Slow and obvious versions of what kgcf computes fast, and the awkward random graphs to compare them on."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph


def random_graph(
    generator: np.random.Generator, entities: int = 12, relations: int = 3, triples: int = 40, isolated: int = 2
) -> KnowledgeGraph:
    """A graph with self-loops, parallel edges, a hub and isolated entities."""
    linked = max(entities - isolated, 1)
    heads = generator.integers(0, linked, triples)
    heads[: triples // 4] = 0  # a hub
    tails = generator.integers(0, linked, triples)
    tails[-2:] = heads[-2:]  # self-loops
    rows = np.stack([heads, generator.integers(0, relations, triples), tails], axis=1)
    return KnowledgeGraph.build(rows, entities, relations)


def graphs(max_entities: int = 8, max_relations: int = 3, max_triples: int = 25) -> st.SearchStrategy[KnowledgeGraph]:
    """Any small graph, the empty one included."""

    def of_size(size: tuple[int, int]) -> st.SearchStrategy[KnowledgeGraph]:
        entity, relation = st.integers(0, size[0] - 1), st.integers(0, size[1] - 1)
        rows = st.lists(st.tuples(entity, relation, entity), max_size=max_triples)
        return rows.map(lambda found: KnowledgeGraph.build(np.array(found).reshape(-1, 3), *size))

    return st.tuples(st.integers(1, max_entities), st.integers(1, max_relations)).flatmap(of_size)


def edge_set(graph: KnowledgeGraph) -> set[tuple[int, int, int]]:
    """Forward and inverse edges, from the triples alone."""
    edges: set[tuple[int, int, int]] = set()
    for h, r, t in graph.triples.tolist():
        edges |= {(h, r, t), (t, r + graph.relation_count, h)}
    return edges


def filtered_rank(scores: NDArray[np.float32], answer: int, known: set[int]) -> tuple[int, int, int]:
    """Better, equal and admissible candidates of one query, by looking at every entity."""
    others = [e for e in range(len(scores)) if e != answer and e not in known]
    better = sum(bool(scores[e] > scores[answer]) for e in others)
    equal = sum(bool(scores[e] == scores[answer]) for e in others)
    return better, equal, len(others) + 1
