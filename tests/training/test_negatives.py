"""Strict negatives: never a known tail, every other entity equally often, none where there is none."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.training.negatives import draw_near_negatives, draw_negatives
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


@given(graphs(), st.integers(0, 99))
def test_near_negatives_are_strict_too(graph: KnowledgeGraph, seed: int) -> None:
    generator = np.random.default_rng(seed)
    heads, answers = generator.integers(0, graph.entity_count, (2, 6))
    relations = generator.integers(0, 2 * graph.relation_count, 6)
    uniform, possible = draw_negatives(graph, heads, relations, 9, generator)
    drawn = draw_near_negatives(graph, heads, relations, answers, uniform, 3, generator)
    for b in np.flatnonzero(possible).tolist():
        known = set(graph.tails(int(heads[b]), int(relations[b])).tolist())
        assert not known & set(drawn[b].tolist())


def walk_distribution(graph: KnowledgeGraph, head: int, answer: int, longest: int) -> NDArray[np.float64]:
    """The chance of every entity to be the end of a walk, from the matrix of single steps."""
    count = graph.entity_count
    step = np.zeros((count, count))
    for here in range(count):
        row = graph.edge_tails[graph.offsets[here] : graph.offsets[here + 1]].tolist()
        for there in row:
            forbidden = {here, there} == {head, answer}
            step[here, here if forbidden else there] += 1 / len(row)
        if not row:
            step[here, here] = 1
    powers = [np.linalg.matrix_power(step, length)[head] for length in range(1, longest + 1)]
    mean: NDArray[np.float64] = np.mean(powers, axis=0)
    return mean


def test_near_negatives_are_ends_of_walks() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 2], [2, 1, 3], [0, 1, 3], [3, 0, 4], [4, 0, 5], [0, 0, 5]], 8, 2)
    draws = 60_000
    start = np.zeros(1, np.int64)
    uniform = np.full((1, draws), 7)  # stands for "the walk ended in a known tail"
    drawn = draw_near_negatives(graph, start, start, np.array([5]), uniform, 3, np.random.default_rng(0))
    expected = walk_distribution(graph, 0, 5, 3)
    expected[7] = expected[[1, 5]].sum()  # the known tails of (0, 0)
    expected[[1, 5]] = 0
    assert np.allclose(np.bincount(drawn[0], minlength=8) / draws, expected, atol=0.01)


def test_what_is_hidden_chooses_no_negative() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 2], [2, 0, 3]], 5, 1)
    start = np.zeros(1, np.int64)
    uniform = np.full((1, 1000), 4)
    drawn = draw_near_negatives(graph, start, start, np.array([1]), uniform, 4, np.random.default_rng(0))
    assert set(drawn[0].tolist()) == {0}, "only the hidden triple leads away from the head"
