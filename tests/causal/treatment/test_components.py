"""Components and bridges equal those of a graph library."""

import hypothesis
import networkx as nx
import numpy as np
import pytest

from kgcf.causal.relation_graphs import SimpleGraphs
from kgcf.causal.treatment.components import component_labels, find_bridges
from kgcf.data.graph import KnowledgeGraph
from tests.causal.treatment.oracles import clustered_graph, graphs_with_hidden, relation_graph


def assert_components_and_bridges(graph: KnowledgeGraph) -> None:
    graphs = SimpleGraphs.build(graph)
    labels, bridges = component_labels(graphs), find_bridges(graphs)
    for group in range(graph.relation_count):
        simple = relation_graph(graph, group)
        begin, end = graphs.group_offsets[group : group + 2]
        found: dict[int, set[int]] = {}
        for entity, label in zip(graphs.entities[begin:end].tolist(), labels[begin:end].tolist(), strict=True):
            found.setdefault(label, set()).add(entity)
        assert sorted(found) == list(range(1, len(found) + 1))
        assert sorted(map(sorted, found.values())) == sorted(map(sorted, nx.connected_components(simple)))
        expected = {frozenset(edge) for edge in nx.bridges(simple)}
        ends = graphs.entities[graphs.links.ends[bridges & (graphs.edge_groups == group)]]
        assert {frozenset(pair) for pair in ends.tolist()} == expected


@hypothesis.settings(deadline=None)
@hypothesis.given(case=graphs_with_hidden())
def test_small_graphs(case: tuple[KnowledgeGraph, list[list[int]]]) -> None:
    assert_components_and_bridges(case[0])


@pytest.mark.parametrize("seed", range(3))
def test_clustered_graphs(seed: int) -> None:
    assert_components_and_bridges(clustered_graph(np.random.default_rng(seed)))
