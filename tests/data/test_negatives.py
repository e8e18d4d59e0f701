"""Strict negatives: never a known tail, every other entity equally often, none where there is none."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.negatives import draw_negatives
from tests.oracles import graphs


@given(graphs(), st.integers(0, 99))
def test_never_a_known_tail(graph: KnowledgeGraph, seed: int) -> None:
    generator = np.random.default_rng(seed)
    heads = generator.integers(0, graph.entity_count, 6)
    relations = generator.integers(0, 2 * graph.relation_count, 6)
    drawn, possible = draw_negatives(graph, heads, relations, 9, generator)
    for b in range(6):
        free = set(range(graph.entity_count)) - set(graph.tails(int(heads[b]), int(relations[b])).tolist())
        assert possible[b] == bool(free)
        if free:
            assert set(drawn[b].tolist()) <= free


def test_all_others_equally_often() -> None:
    graph = KnowledgeGraph.build([[0, 0, 2], [0, 0, 3], [0, 0, 6]], 8, 1)
    drawn, _ = draw_negatives(graph, np.zeros(1, np.int64), np.zeros(1, np.int64), 50_000, np.random.default_rng(0))
    counts = np.bincount(drawn[0], minlength=8)
    assert counts[[2, 3, 6]].sum() == 0
    assert np.allclose(counts[[0, 1, 4, 5, 7]] / 50_000, 0.2, atol=0.01)


def test_a_query_without_negatives_is_told() -> None:
    graph = KnowledgeGraph.build([[0, 0, 0], [0, 0, 1]], 2, 1)
    drawn, possible = draw_negatives(graph, np.array([0, 1]), np.array([0, 0]), 3, np.random.default_rng(0))
    assert possible.tolist() == [False, True]
    assert drawn[0].tolist() == [0, 0, 0]
