"""Fast matching equals the definition; exclusions, ties, unmatched triples, inverse relations."""

import math
from typing import Any, Literal

import numpy as np
import pytest

from kgcf.causal.counterfactual import match_pairs
from kgcf.causal.counterfactual.nearest import search_among, search_by_label
from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import DataError, SettingsError

from .oracles import GivenTreatment, match_by_loops, random_case, space_of

MODES: tuple[Literal["all", "observed"], ...] = ("all", "observed")


def every_query(graph: KnowledgeGraph) -> np.ndarray[Any, np.dtype[np.int32]]:
    n, r = graph.entity_count, 2 * graph.relation_count
    grid = np.stack(np.meshgrid(np.arange(n), np.arange(r), np.arange(n), indexing="ij"), axis=-1)
    return grid.reshape(-1, 3).astype(np.int32)


def assert_equals_loops(graph: KnowledgeGraph, space: Any, treatment: Any, rng: np.random.Generator) -> None:
    queries = every_query(graph)
    queries = queries[rng.choice(len(queries), min(25, len(queries)), replace=False)]
    queries = np.concatenate([queries, graph.triples[:8]])
    for mode in MODES:
        for own in (True, False):
            table = match_pairs(queries, graph, space, treatment, mode, leave_one_out=own, threads=1)
            forward = np.where(queries[:, 1:2] >= graph.relation_count, queries[:, ::-1], queries)
            forward[:, 1] %= graph.relation_count
            assert (table.factual_treatments == treatment.treated_triples(forward, leave_one_out=own)).all()
            assert (table.factual_outcomes == graph.contains(queries)).all()
            for i, query in enumerate(queries):
                a, b, distance = match_by_loops(tuple(query), graph, space, treatment, mode, own)
                assert tuple(table.substitutes[i]) == (a, b), (mode, own, query)
                assert table.distances[i] == distance
                if a < 0:
                    assert table.counterfactual_treatments[i] == table.factual_treatments[i]
                    assert table.counterfactual_outcomes[i] == table.factual_outcomes[i]
                else:
                    assert table.counterfactual_treatments[i] != table.factual_treatments[i]
                    assert table.counterfactual_outcomes[i] == graph.contains([[a, query[1], b]])[0]
            assert (table.matched == (table.substitutes[:, 0] >= 0)).all()


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("lattice", [True, False])
def test_equals_loops_with_made_up_labels(seed: int, lattice: bool) -> None:
    graph, space, treatment = random_case(seed, lattice)
    assert_equals_loops(graph, space, treatment, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["core_number", "collapsed_core", "core_component"])
def test_equals_loops_with_real_treatments(seed: int, method: Any) -> None:
    graph, space, _ = random_case(100 + seed, lattice=seed % 2 == 0)
    assert_equals_loops(
        graph, space, assign_treatment(graph, TreatmentSettings(method=method)), np.random.default_rng(seed)
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["core_number", "collapsed_core", "core_component"])
def test_equals_loops_where_pairs_are_hidden(seed: int, method: Any) -> None:
    """Few entities, many links in both directions and of several relations."""
    rng = np.random.default_rng(seed)
    triples = np.stack([rng.integers(0, 7, 26), rng.integers(0, 2, 26), rng.integers(0, 7, 26)], axis=1)
    graph = KnowledgeGraph.build(triples, 8, 2)
    space = space_of(rng.normal(size=(8, 3)))
    treatment = assign_treatment(graph, TreatmentSettings(method=method))
    queries = np.concatenate([graph.triples[:12], every_query(graph)[rng.integers(0, 8 * 4 * 8, 12)]])
    for mode in MODES:
        table = match_pairs(queries, graph, space, treatment, mode, True, threads=1, remove="pair")
        for i, query in enumerate(queries):
            a, b, distance = match_by_loops(tuple(query), graph, space, treatment, mode, True, "pair")
            assert tuple(table.substitutes[i]) == (a, b), (mode, query)
            assert table.distances[i] == distance


def test_pieces_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    triples = np.stack([rng.integers(0, 60, 400), rng.integers(0, 3, 400), rng.integers(0, 60, 400)], axis=1)
    graph = KnowledgeGraph.build(triples, 60, 3)
    space, treatment = space_of(rng.integers(-2, 3, (60, 3))), assign_treatment(graph)
    for mode in MODES:
        whole = match_pairs(graph.triples, graph, space, treatment, mode, threads=1)
        with monkeypatch.context() as patch:
            patch.setattr("kgcf.causal.counterfactual.nearest.PIECE_BYTES", 1)
            patch.setattr("kgcf.causal.counterfactual.matching.SLICE", 7)
            pieces = match_pairs(graph.triples, graph, space, treatment, mode, threads=3)
        assert (whole.substitutes == pieces.substitutes).all()
        assert (whole.distances == pieces.distances).all()


def test_sums_that_only_differ_by_rounding_are_told_apart() -> None:
    # (1, 5) lies at 2^-30 + 2^30, (2, 5) at 0 + 2^30: equal once rounded, but the second is nearer.
    small = 2.0**-30
    space = space_of(np.array([[0.0], [small], [0.0], [2.0**30], [0.0], [2.0**31]]))
    triples = [[0, 0, 3], [1, 0, 5], [2, 0, 5], [4, 0, 4]]
    graph = KnowledgeGraph.build(triples, 6, 1)
    labels = np.array([[1, 0, 0, 1, 0, 0]], dtype=np.int32)
    treatment: Any = GivenTreatment(graph, labels, np.array([True, False, False, False]))
    table = match_pairs([[0, 0, 3]], graph, space, treatment, "observed", threads=1)
    assert 2.0**30 + small == 2.0**30 == table.distances[0]
    assert tuple(table.substitutes[0]) == (2, 5)


def test_no_opposite_pair_leaves_the_triple_as_it_is() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1]], 2, 1)
    treatment = assign_treatment(graph)
    for mode in MODES:
        table = match_pairs([[0, 0, 1], [1, 0, 0]], graph, space_of(np.zeros((2, 2))), treatment, mode, False)
        assert not table.matched.any()
        assert table.counterfactual_treatments.tolist() == table.factual_treatments.tolist() == [True, True]
        assert table.counterfactual_outcomes.tolist() == table.factual_outcomes.tolist() == [True, False]
        assert np.isinf(table.distances).all()


def test_empty_graph_and_empty_question() -> None:
    graph = KnowledgeGraph.build(np.zeros((0, 3), int), 3, 2)
    treatment = assign_treatment(graph)
    for mode in MODES:
        assert len(match_pairs([], graph, space_of(np.zeros((3, 2))), treatment, mode)) == 0
        assert not match_pairs([[0, 3, 1]], graph, space_of(np.zeros((3, 2))), treatment, mode).matched.any()


def test_an_entity_without_train_edge_is_no_substitute() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 2], [0, 0, 2], [3, 1, 4]], 6, 2)
    space = space_of(np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [0.1]]))  # 5 is nearest to 0, and isolated
    table = match_pairs([[0, 0, 1]], graph, space, assign_treatment(graph), "all", False)
    assert 5 not in table.substitutes


def test_k_larger_than_any_core_treats_nobody() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 2], [0, 0, 2]], 3, 1)
    treatment = assign_treatment(graph, TreatmentSettings(method="core_component", k=9))
    for mode in MODES:
        table = match_pairs(graph.triples, graph, space_of(np.eye(3)), treatment, mode)
        assert not table.matched.any()
        assert not table.factual_treatments.any()


def test_bad_questions_are_refused_with_advice() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1]], 2, 1)
    treatment, space = assign_treatment(graph), space_of(np.zeros((2, 1)))
    with pytest.raises(DataError, match="position 1 is outside the graph"):
        match_pairs([[0, 0, 1], [0, 2, 1]], graph, space, treatment)
    with pytest.raises(DataError, match="embed this graph's entities"):
        match_pairs([[0, 0, 1]], graph, space_of(np.zeros((3, 1))), treatment)
    with pytest.raises(SettingsError, match="Choices: all, observed"):
        match_pairs([[0, 0, 1]], graph, space, treatment, "some")  # type: ignore[arg-type]


def test_searches_without_candidates_find_nothing() -> None:
    vectors, none = np.zeros((3, 2), np.float32), np.zeros(0, np.int64)
    for search in (
        search_among(vectors, none, none),
        search_by_label(vectors, np.array([0]), np.array([1, 1, 1]), wanted=False),
        search_by_label(vectors, np.arange(3), np.array([1, 0, 0]), wanted=True),
    ):
        a, b, distances = search(np.array([0, 1]), np.array([1, 2]))
        assert a.tolist() == b.tolist() == [-1, -1]
        assert all(map(math.isinf, distances))
