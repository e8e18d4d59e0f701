"""A_r is simple and undirected; walks follow its edges with the weights of p and q."""

import itertools

import networkx as nx
import numpy as np
import pytest

from kgcf.causal.embedding.walks import walk_round
from kgcf.causal.relation_graphs import RelationGraph, relation_graphs
from kgcf.data.graph import KnowledgeGraph


def random_graph(seed: int) -> KnowledgeGraph:
    rng = np.random.default_rng(seed)
    triples = np.stack([rng.integers(0, 9, 30), rng.integers(0, 4, 30), rng.integers(0, 9, 30)], axis=1)
    return KnowledgeGraph.build(triples, 12, 5)


def part_of(edges: list[tuple[int, int]]) -> RelationGraph:
    return next(relation_graphs(KnowledgeGraph.build([(a, 0, b) for a, b in edges], 10, 1)))


@pytest.mark.parametrize("seed", range(20))
def test_relation_graphs_equal_networkx(seed: int) -> None:
    graph = random_graph(seed)
    parts = {part.relation: part for part in relation_graphs(graph)}
    for relation in range(graph.relation_count):
        expected: nx.Graph[int] = nx.Graph()
        expected.add_edges_from((h, t) for h, r, t in graph.triples.tolist() if r == relation and h != t)
        if relation not in parts:
            assert not expected
            continue
        part = parts[relation]
        assert part.entities.tolist() == sorted(expected)
        for i, entity in enumerate(part.entities):
            row = part.neighbours[part.offsets[i] : part.offsets[i + 1]]
            assert part.entities[row].tolist() == sorted(expected[int(entity)])


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.25), (1.0, 2.0), (3.0, 1.0)])
def test_walks_start_everywhere_and_follow_edges(p: float, q: float) -> None:
    for part in relation_graphs(random_graph(3)):
        walks = walk_round(part, 12, p, q, np.random.default_rng(1))
        assert sorted(walks[:, 0].tolist()) == list(range(len(part)))
        for walk in walks:
            for one, other in itertools.pairwise(walk):
                assert other in part.neighbours[part.offsets[one] : part.offsets[one + 1]]


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.5), (1.0, 3.0), (2.0, 1.0)])
def test_second_order_frequencies(p: float, q: float) -> None:
    """Having gone 0 → 1: back to 0 weighs 1/p, 2 (a neighbour of 0) weighs 1, 3 and 4 weigh 1/q each."""
    part = part_of([(0, 1), (0, 2), (1, 2), (1, 3), (1, 4)])
    weights = np.array([1 / p, 0.0, 1.0, 1 / q, 1 / q])
    rng, seen = np.random.default_rng(5), np.zeros(5)
    for _ in range(60):
        walks = walk_round(part, 200, p, q, rng)
        after = (walks[:, :-2] == 0) & (walks[:, 1:-1] == 1)
        seen += np.bincount(walks[:, 2:][after], minlength=5)
    shares, expected = seen / seen.sum(), weights / weights.sum()
    errors = np.sqrt(expected * (1 - expected) / seen.sum())
    assert (np.abs(shares - expected) <= 4.5 * errors).all()


def test_a_round_is_a_function_of_its_generator() -> None:
    part = part_of([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)])
    one, other, third = (walk_round(part, 30, 1, 2, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (one == other).all()
    assert (one != third).any()
