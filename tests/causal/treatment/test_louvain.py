"""Communities: planted ones are found, no single move gains, every run is the same."""

import networkx as nx
import numpy as np
import pytest

from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.data.graph import KnowledgeGraph
from tests.causal.treatment.oracles import clustered_graph, hide, relation_graph

LOUVAIN = TreatmentSettings(method="louvain")


def planted(generator: np.random.Generator, groups: int = 6, size: int = 20) -> KnowledgeGraph:
    """Groups with many links inside and few between."""
    count = groups * size
    u, v = np.triu_indices(count, 1)
    chance = np.where(u // size == v // size, 0.5, 0.01)
    linked = generator.random(len(u)) < chance
    return KnowledgeGraph.build(np.stack([u[linked], np.zeros(linked.sum(), int), v[linked]], axis=1), count, 1)


def communities(graph: KnowledgeGraph, settings: TreatmentSettings) -> list[set[int]]:
    entities, labels = assign_treatment(graph, settings, threads=1).labels.of(0)
    return [set(entities[labels == label].tolist()) for label in np.unique(labels)]


@pytest.mark.parametrize("seed", range(3))
def test_planted_communities_are_found(seed: int) -> None:
    graph = planted(np.random.default_rng(seed))
    found = communities(graph, TreatmentSettings(method="louvain", seed=seed))
    assert sorted(map(sorted, found)) == [list(range(20 * g, 20 * g + 20)) for g in range(6)]


@pytest.mark.parametrize("resolution", [0.5, 1.0, 2.0])
def test_as_good_as_a_graph_library(resolution: float) -> None:
    graph = clustered_graph(np.random.default_rng(4), clusters=12, size=8)
    simple = relation_graph(graph, 0)
    own = communities(graph, TreatmentSettings(method="louvain", resolution=resolution))
    theirs = nx.community.louvain_communities(simple, resolution=resolution, seed=1)
    quality = nx.community.modularity(simple, own, resolution=resolution)
    assert quality >= nx.community.modularity(simple, theirs, resolution=resolution) - 0.02


def test_resolution_makes_smaller_communities() -> None:
    graph = planted(np.random.default_rng(1))
    sizes = [len(communities(graph, TreatmentSettings(method="louvain", resolution=x))) for x in (0.05, 1.0, 20.0)]
    assert sizes[0] < sizes[1] < sizes[2]


def test_two_cliques_cannot_be_improved() -> None:
    cliques = [(a + c, 0, b + c) for c in (0, 4) for a in range(4) for b in range(a)]
    graph = KnowledgeGraph.build([*cliques, (0, 0, 4)], 8, 1)
    assert sorted(map(sorted, communities(graph, LOUVAIN))) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_every_run_is_the_same_whatever_the_threads() -> None:
    graph = clustered_graph(np.random.default_rng(2))
    prints = {assign_treatment(graph, LOUVAIN, threads=n).fingerprint for n in (1, 2, 5)}
    assert len(prints) == 1


def test_relations_do_not_see_each_other() -> None:
    graph = clustered_graph(np.random.default_rng(2))
    alone = KnowledgeGraph.build(graph.triples[graph.triples[:, 1] == 0], graph.entity_count, 2)
    both = assign_treatment(graph, LOUVAIN).labels.dense(0)
    np.testing.assert_array_equal(both, assign_treatment(alone, LOUVAIN).labels.dense(0))


def test_last_edge_hidden_loses_the_label_and_nothing_else_changes() -> None:
    graph = KnowledgeGraph.build([(0, 0, 1), (1, 0, 2), (2, 0, 0), (2, 0, 3), (3, 0, 2), (3, 1, 0), (1, 0, 4)], 5, 2)
    treatment = assign_treatment(graph, TreatmentSettings(method="louvain", resolution=0.01))
    assert "approximate" in treatment.notes[0]
    assert treatment.treated([0], [0]).all()
    rows = [[3], [3, 4], [6], [0, 3, 4, 6], [5]]
    relations = [0, 0, 0, 2, 0]
    changes = treatment.changes(relations, hide(rows))
    assert [changes.of(b) for b in range(5)] == [{}, {3: 0}, {4: 0}, {3: 0, 4: 0}, {}]
    treated = treatment.treated([0, 0], [0, 2], None, hide([[3, 4], [0, 3, 4, 6]]))
    assert treated.tolist() == [[True, True, True, False, True], [True, True, True, False, False]]
