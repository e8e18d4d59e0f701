"""T without the hidden set equals T of a graph from which the hidden triples were removed."""

from concurrent.futures import ThreadPoolExecutor

import hypothesis
import numpy as np
import pytest

from kgcf.causal.treatment import Treatment, TreatmentSettings, assign_treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, hide_pairs, hide_triples
from tests.causal.treatment.oracles import EXACT, clustered_graph, graphs_with_hidden, hide, naive_labels, naive_treated

exact_methods = pytest.mark.parametrize("settings", EXACT, ids=lambda s: f"{s.method}-{s.k}")


def assert_exact(treatment: Treatment, heads: list[int], relations: list[int], hidden: HiddenTriples) -> None:
    """Compare with the oracle: every query against every entity, and against a table of candidates."""
    graph = treatment.graph
    expected = [
        naive_treated(graph, treatment.settings, h, r, hidden.of(b).tolist())
        for b, (h, r) in enumerate(zip(heads, relations, strict=True))
    ]
    np.testing.assert_array_equal(treatment.treated(heads, relations, None, hidden), expected)
    everybody = np.tile(np.arange(graph.entity_count)[::-1], (len(heads), 1))
    found = treatment.treated(heads, relations, everybody, hidden)
    np.testing.assert_array_equal(found[:, ::-1], expected)


@exact_methods
@hypothesis.settings(deadline=None, max_examples=80)
@hypothesis.given(case=graphs_with_hidden())
def test_any_hidden_set(settings: TreatmentSettings, case: tuple[KnowledgeGraph, list[list[int]]]) -> None:
    graph, rows = case
    treatment = assign_treatment(graph, settings, threads=1)
    heads, relations, hidden = [], [], []
    for b, row in enumerate(rows):
        for relation in range(2 * graph.relation_count):
            heads.append(b % graph.entity_count)
            relations.append(relation)
            hidden.append(row)
    assert_exact(treatment, heads, relations, hide(hidden))


@exact_methods
@pytest.mark.parametrize("seed", range(3))
def test_every_single_triple_of_a_clustered_graph(settings: TreatmentSettings, seed: int) -> None:
    graph = clustered_graph(np.random.default_rng(seed))
    treatment = assign_treatment(graph, settings, threads=2)
    heads, relations, tails = graph.triples.T
    hidden = hide_triples(graph, heads, relations, tails)
    assert_exact(treatment, heads.tolist(), relations.tolist(), hidden)
    alone = treatment.treated_triples(graph.triples, leave_one_out=True)
    everybody = treatment.treated(heads, relations, None, hidden)
    np.testing.assert_array_equal(alone, everybody[np.arange(len(graph)), tails])


@exact_methods
@pytest.mark.parametrize("seed", range(3))
def test_several_hidden_triples_of_a_clustered_graph(settings: TreatmentSettings, seed: int) -> None:
    generator = np.random.default_rng(seed + 10)
    graph = clustered_graph(generator)
    treatment = assign_treatment(graph, settings, threads=1)
    rows = [
        generator.choice(len(graph), size=int(generator.integers(2, 25)), replace=False).tolist() for _ in range(30)
    ]
    heads = generator.integers(0, graph.entity_count, 30).tolist()
    assert_exact(treatment, heads, generator.integers(0, 4, 30).tolist(), hide(rows))


@exact_methods
def test_pairs_hidden_with_their_negatives(settings: TreatmentSettings) -> None:
    generator = np.random.default_rng(5)
    graph = clustered_graph(generator)
    treatment = assign_treatment(graph, settings, threads=1)
    queries = graph.triples[generator.integers(0, len(graph), 40)]
    candidates = np.concatenate([queries[:, 2:], generator.integers(0, graph.entity_count, (40, 8))], axis=1)
    hidden = hide_pairs(graph, queries[:, 0], candidates)
    assert_exact(treatment, queries[:, 0].tolist(), queries[:, 1].tolist(), hidden)
    table = treatment.treated(queries[:, 0], queries[:, 1], candidates, hidden)
    rebuilt = [assign_treatment(graph.without(graph.triples[hidden.of(b)]), settings, threads=1) for b in range(40)]
    expected = [
        rebuilt[b].treated(queries[b : b + 1, 0], queries[b : b + 1, 1], candidates[b : b + 1]) for b in range(40)
    ]
    np.testing.assert_array_equal(table, np.concatenate(expected))


@exact_methods
def test_stored_changes_equal_those_found_on_the_fly(settings: TreatmentSettings) -> None:
    graph = clustered_graph(np.random.default_rng(8))
    stored = assign_treatment(graph, settings, threads=2)
    lazy = assign_treatment(graph, settings.model_copy(update={"leave_one_out": False}), threads=1)
    assert stored.stored is not None
    assert lazy.stored is None
    hidden = hide_triples(graph, *graph.triples.T)
    left, right = stored.changes(graph.triples[:, 1], hidden), lazy.changes(graph.triples[:, 1], hidden)
    assert len(left.entities) > 0
    for name in ("offsets", "entities", "labels"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


@pytest.mark.parametrize("settings", EXACT[:2], ids=lambda s: s.method)
def test_changed_core_numbers_are_the_core_numbers(settings: TreatmentSettings) -> None:
    graph = clustered_graph(np.random.default_rng(9))
    treatment = assign_treatment(graph, settings, threads=1)
    changes = treatment.changes(graph.triples[:, 1], hide_triples(graph, *graph.triples.T))
    for i, (_, r, _) in enumerate(graph.triples.tolist()):
        before = {e: label for e, label in enumerate(treatment.labels.dense(r).tolist()) if label}
        after = {e: label for e, label in {**before, **changes.of(i)}.items() if label}
        assert after == naive_labels(graph, settings, r, [i])
        assert all(0 <= before[e] - label <= 1 for e, label in changes.of(i).items())


def test_reverse_triple_keeps_the_edge() -> None:
    graph = KnowledgeGraph.build([(0, 0, 1), (1, 0, 0)], 3, 1)
    treatment = assign_treatment(graph)
    assert treatment.treated_triples(graph.triples, leave_one_out=True).all()
    assert not treatment.treated([0], [0], [[1]], hide([[0, 1]])).any()


def test_another_relation_keeps_the_collapsed_edge_only() -> None:
    graph = KnowledgeGraph.build([(0, 0, 1), (1, 1, 0)], 2, 2)
    for method, stays in (("core_number", False), ("collapsed_core", True)):
        treatment = assign_treatment(graph, TreatmentSettings.model_validate({"method": method}))
        assert treatment.treated_triples(graph.triples, leave_one_out=True).tolist() == [stays, stays]


def test_hidden_triples_of_another_relation_change_nothing() -> None:
    graph = KnowledgeGraph.build([(0, 0, 1), (1, 1, 2), (2, 1, 0)], 3, 2)
    treatment = assign_treatment(graph)
    np.testing.assert_array_equal(treatment.treated([0], [0], None, hide([[1, 2]])), treatment.treated([0], [0]))


def test_an_entity_that_drops_out_cuts_the_core_in_two() -> None:
    """Two cliques of five joined by entity 10: without one of its three edges it leaves the 3-core."""
    cliques = [(a + c, 0, b + c) for c in (0, 5) for a in range(5) for b in range(a)]
    graph = KnowledgeGraph.build([*cliques, (10, 0, 0), (1, 0, 10), (5, 0, 10)], 11, 1)
    treatment = assign_treatment(graph, TreatmentSettings(method="core_component", k=3))
    assert treatment.treated([0], [0]).all()
    apart = treatment.treated([0], [0], None, hide_triples(graph, [10], [0], [0]))
    assert apart[0].tolist() == [True] * 5 + [False] * 6


@pytest.mark.parametrize("settings", EXACT[:4], ids=lambda s: f"{s.method}-{s.k}")
def test_edges_that_change_too_much_to_be_stored(settings: TreatmentSettings) -> None:
    """A cycle loses its 2-core with any edge, and a chain of triangles is cut in two by any link."""
    ring = [(i, 0, (i + 1) % 150) for i in range(150)]
    chain = [(3 * c + a, 1, 3 * c + b) for c in range(50) for a, b in ((0, 1), (1, 2), (2, 0))]
    links = [(3 * c + 2, 1, 3 * c + 3) for c in range(49)]
    graph = KnowledgeGraph.build(ring + chain + links, 151, 2)
    treatment = assign_treatment(graph, settings, threads=2)
    assert treatment.stored is not None
    if settings.method != "collapsed_core":
        assert not treatment.stored.complete.all()
    chosen = np.arange(0, len(graph), 7)
    heads, relations, tails = graph.triples[chosen].T
    hidden = hide_triples(graph, heads, relations, tails)
    assert_exact(treatment, heads.tolist(), relations.tolist(), hidden)


def test_a_query_is_not_touched_by_the_one_before() -> None:
    """Working copies are shared by the queries of a batch and by calls: each must leave them as it found them."""
    generator = np.random.default_rng(3)
    graph = clustered_graph(generator)
    for settings in EXACT:
        treatment = assign_treatment(graph, settings, threads=1)
        rows = [generator.choice(len(graph), size=12, replace=False).tolist() for _ in range(20)]
        heads, relations = generator.integers(0, graph.entity_count, 20), generator.integers(0, 2, 20)
        together = treatment.treated(heads, relations, None, hide(rows))
        for b in reversed(range(20)):
            alone = treatment.treated(heads[b : b + 1], relations[b : b + 1], None, hide([rows[b]]))
            np.testing.assert_array_equal(alone[0], together[b])


@exact_methods
def test_threads_do_not_disturb_each_other(settings: TreatmentSettings) -> None:
    generator = np.random.default_rng(4)
    graph = clustered_graph(generator, clusters=30)
    treatment = assign_treatment(graph, settings, threads=1)
    rows = [generator.choice(len(graph), size=40, replace=False).tolist() for _ in range(200)]
    relations = np.zeros(200, int)
    alone = treatment.changes(relations, hide(rows))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: treatment.changes(relations, hide(rows)), range(24)):
            np.testing.assert_array_equal(found.entities, alone.entities)
            np.testing.assert_array_equal(found.labels, alone.labels)


def test_hidden_sets_must_fit_the_queries() -> None:
    graph = KnowledgeGraph.build([(0, 0, 1)], 2, 1)
    with pytest.raises(ValueError, match="2 queries but hidden triples for 1"):
        assign_treatment(graph).treated([0, 1], [0, 0], None, hide([[0]]))
