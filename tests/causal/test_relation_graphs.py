"""A_r is undirected and simple, and knows which triples make an edge."""

import hypothesis
import numpy as np
import pytest

from kgcf.causal.relation_graphs import SimpleGraphs
from kgcf.causal.treatment.core_peel import core_numbers
from kgcf.data.graph import KnowledgeGraph
from tests.causal.treatment.oracles import graphs_with_hidden, relation_graph


def places_of(graphs: SimpleGraphs, group: int) -> range:
    return range(int(graphs.group_offsets[group]), int(graphs.group_offsets[group + 1]))


def edges_of(graphs: SimpleGraphs, group: int) -> set[frozenset[int]]:
    """The pairs of entities that the neighbour lists of one group link, each seen from both ends."""
    links, found = graphs.links, []
    for place in places_of(graphs, group):
        row = links.neighbours[links.offsets[place] : links.offsets[place + 1]].tolist()
        assert row == sorted(set(row))
        found += [frozenset((int(graphs.entities[place]), int(graphs.entities[x]))) for x in row]
    assert all(found.count(pair) == 2 for pair in found)
    return set(found)


@pytest.mark.parametrize("collapsed", [False, True])
@hypothesis.settings(deadline=None)
@hypothesis.given(case=graphs_with_hidden())
def test_equals_the_obvious_graph(collapsed: bool, case: tuple[KnowledgeGraph, list[list[int]]]) -> None:
    graph = case[0]
    graphs = SimpleGraphs.build(graph, collapsed=collapsed)
    for group in range(1 if collapsed else graph.relation_count):
        expected = relation_graph(graph, None if collapsed else group)
        assert edges_of(graphs, group) == {frozenset(edge) for edge in expected.edges}
        assert graphs.entities[list(places_of(graphs, group))].tolist() == sorted(expected)
    assert_triples_match(graph, graphs)


def assert_triples_match(graph: KnowledgeGraph, graphs: SimpleGraphs) -> None:
    made = np.zeros(graphs.edge_count, dtype=np.int64)
    for (h, r, t), edge in zip(graph.triples.tolist(), graphs.triple_edges.tolist(), strict=True):
        assert (edge < 0) == (h == t)
        if edge >= 0:
            made[edge] += 1
            assert {h, t} == set(graphs.entities[graphs.links.ends[edge]].tolist())
            assert graphs.edge_groups[edge] == graphs.groups[r]
    np.testing.assert_array_equal(made, graphs.multiplicity)


@hypothesis.settings(deadline=None)
@hypothesis.given(case=graphs_with_hidden())
def test_induced_on_the_two_core(case: tuple[KnowledgeGraph, list[list[int]]]) -> None:
    graph = case[0]
    graphs = SimpleGraphs.build(graph)
    keep = core_numbers(graphs) >= 2
    inner = graphs.induced(keep)
    for group in range(graph.relation_count):
        kept = {int(graphs.entities[place]) for place in places_of(graphs, group) if keep[place]}
        assert edges_of(inner, group) == {edge for edge in edges_of(graphs, group) if edge <= kept}
        for i, (h, r, t) in enumerate(graph.triples.tolist()):
            if r == group and h != t:
                assert (inner.triple_edges[i] >= 0) == ({h, t} <= kept)
                if {h, t} <= kept:
                    assert {h, t} == set(inner.entities[inner.links.ends[inner.triple_edges[i]]].tolist())
