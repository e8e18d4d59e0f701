"""Hidden sets against looking at every triple."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove, hide_by_rule, hide_known, hide_nothing, hide_pairs, hide_triples
from tests.oracles import graphs


@given(graphs(), st.integers(0, 2**32 - 1), st.sampled_from([1, 3]))
def test_pairs_hide_every_link_between_head_and_candidates(graph: KnowledgeGraph, seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    heads = generator.integers(0, graph.entity_count, 4)
    candidates = generator.integers(0, graph.entity_count, (4, count))
    hidden = hide_pairs(graph, heads, candidates)
    for b in range(4):
        expected = [
            e
            for e, (h, _, t) in enumerate(graph.triples.tolist())
            if (h == heads[b] and t in candidates[b]) or (t == heads[b] and h in candidates[b])
        ]
        assert hidden.of(b).tolist() == expected


@pytest.mark.parametrize("count", [1, 2])
def test_many_links_of_one_pair_are_all_found(count: int) -> None:
    graph = KnowledgeGraph.build([[0, relation, 1] for relation in range(200)], 2, 200)
    hidden = hide_pairs(graph, [0, 1], np.array([[1, 0], [0, 1]])[:, :count])
    assert [hidden.of(b).tolist() for b in range(2)] == [list(range(200))] * 2


def test_a_hub_does_not_ask_for_the_square_of_its_edges() -> None:
    """One hub with n links, asked about all of them: all its edges for every link would be n² entries, 80 GB."""
    count = 100_000
    spokes = np.arange(1, count + 1)
    graph = KnowledgeGraph.build(np.column_stack([np.zeros_like(spokes), np.zeros_like(spokes), spokes]), count + 1, 1)
    hidden = hide_known(graph, np.zeros_like(spokes), np.zeros_like(spokes), spokes, "pair")
    assert hidden.triples.tolist() == list(range(count))
    assert np.diff(hidden.offsets).tolist() == [1] * count


@given(graphs())
def test_a_triple_is_hidden_from_either_side(graph: KnowledgeGraph) -> None:
    heads, relations, tails = graph.triples.T
    forward = hide_triples(graph, heads, relations, tails)
    backward = hide_triples(graph, tails, relations + graph.relation_count, heads)
    for hidden in (forward, backward):
        assert len(hidden) == len(graph)
        assert hidden.triples.tolist() == list(range(len(graph)))


def test_absent_triples_hide_nothing() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1]], 3, 1)
    hidden = hide_triples(graph, [0, 0, 2], [0, 0, 0], [2, 1, 0])
    assert [hidden.of(b).tolist() for b in range(3)] == [[], [0], []]
    assert len(hide_nothing(5)) == 5
    assert not len(hide_nothing(5).triples)


@pytest.mark.parametrize("remove", ["triple", "pair"])
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_the_rule_decides_and_unknown_triples_hide_nothing(remove: Remove, graph: KnowledgeGraph, seed: int) -> None:
    generator = np.random.default_rng(seed)
    asked = generator.integers(0, [graph.entity_count, 2 * graph.relation_count, graph.entity_count], (6, 3))
    asked = np.concatenate([asked, graph.triples[:3]])
    heads, relations, tails = asked.T
    candidates = np.column_stack([tails, generator.integers(0, graph.entity_count, len(asked))])
    whole = hide_by_rule(graph, heads, relations, candidates, remove)
    single = hide_known(graph, heads, relations, tails, remove)
    by_triple, by_pair = hide_triples(graph, heads, relations, tails), hide_pairs(graph, heads, candidates)
    own_pair = hide_pairs(graph, heads, tails[:, None])
    for b, known in enumerate(graph.contains(asked).tolist()):
        assert whole.of(b).tolist() == (by_pair if remove == "pair" else by_triple).of(b).tolist()
        expected = (own_pair if remove == "pair" else by_triple).of(b).tolist() if known else []
        assert single.of(b).tolist() == expected
