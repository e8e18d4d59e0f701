from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from kgcf.causal.counterfactual import Candidates, match_pairs
from kgcf.causal.embedding import EntitySpace, SpaceSettings
from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.explanation.case import open_case
from kgcf.explanation.counterfactual import Matching, Substitute, find_edge_treatments, find_evidence
from kgcf.explanation.explainer import Explainer
from kgcf.prediction.observed_graph import ObservedGraph
from tests.propagation.random_graphs import random_graph

from .test_case import observe


def a_space(graph: KnowledgeGraph, seed: int = 0) -> EntitySpace:
    vectors = np.random.default_rng(seed).normal(size=(graph.entity_count, 4)).astype(np.float32)
    return EntitySpace(vectors, SpaceSettings(), graph.fingerprint)


def ids(pair: Substitute) -> tuple[int, int]:
    return int(pair.head.label), int(pair.tail.label)  # the labels of these graphs are the numbers themselves


@pytest.mark.parametrize("candidates", ["observed", "all"])
def test_evidence_is_that_of_a_graph_without_the_triple(candidates: Candidates) -> None:
    treatments, matched = set(), 0
    for seed in range(3):
        graph = random_graph(seed, entity_count=12, triple_count=30)
        observed, space = observe(graph), a_space(graph)
        for h, r, t in graph.triples[:10].tolist():
            case = open_case(observed, h, r, t, "triple")
            found = find_evidence(case, Matching(space, candidates))
            smaller = graph.without([[h, r, t]])
            fresh = assign_treatment(smaller, TreatmentSettings())
            assert found.factual_treatment == fresh.treated_triples(np.array([[h, r, t]]))[0] == case.treated
            assert observed.treatment is not None
            table = match_pairs([[h, r, t]], graph, space, observed.treatment, candidates, True)
            treatments.add((found.factual_treatment, found.counterfactual_treatment))
            assert found.counterfactual_treatment == table.counterfactual_treatments[0]
            if found.substitute is None:
                assert not table.matched[0]
                assert found.counterfactual_probability == found.factual_probability
                continue
            matched += 1
            pair = found.substitute
            a, b = ids(pair)
            assert [a, b] == table.substitutes[0].tolist()
            assert pair.distance == table.distances[0]
            assert pair.known == graph.contains([[a, r, b]])[0]
            assert found.counterfactual_treatment != found.factual_treatment
            own = match_pairs([[a, r, b]], graph, space, observed.treatment, candidates, candidates == "observed")
            assert pair.factual_treatment == own.factual_treatments[0] == found.counterfactual_treatment
            assert pair.counterfactual_treatment == own.counterfactual_treatments[0]
    assert {(False, True), (True, False)} <= treatments
    assert matched > 10


def test_probabilities_follow_the_treatment() -> None:
    graph = random_graph(0, entity_count=12, triple_count=30)
    observed, space = observe(graph), a_space(graph)
    for h, r, t in graph.triples[:8].tolist():
        case = open_case(observed, h, r, t, "triple")
        found = find_evidence(case, Matching(space, "all"))
        p = expit(case.logits_under([False, True])).tolist()
        assert found.factual_probability == pytest.approx(expit(case.importance.logit), abs=1e-12)
        assert found.factual_probability == p[int(found.factual_treatment)]
        assert found.counterfactual_probability == p[int(found.counterfactual_treatment)]
        assert found.individual_effect == p[1] - p[0]


def test_hidden_pairs_are_hidden_from_the_treatment_too() -> None:
    """(0, r, 1) and (1, r, 0): hiding the pair takes both out of A_r, hiding the triple leaves the undirected edge."""
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 0], [2, 0, 3], [3, 0, 4], [0, 1, 2], [1, 1, 3]], 5, 2)
    observed, matching = observe(graph), Matching(a_space(graph), "all")
    alone = find_evidence(open_case(observed, 0, 0, 1, "triple"), matching)
    pair = find_evidence(open_case(observed, 0, 0, 1, "pair"), matching)
    assert alone.factual_treatment
    assert not pair.factual_treatment
    assert pair.substitute is not None
    assert set(ids(pair.substitute)) <= {2, 3, 4}


@pytest.mark.parametrize("candidates", ["observed", "all"])
def test_louvain_with_hidden_pairs_leans_on_the_communities_as_fitted(candidates: Candidates) -> None:
    """Communities fitted again without the pair would not be those that the case was treated by."""
    checked, refitted = 0, 0
    for seed in range(4):
        graph = random_graph(seed, entity_count=12, triple_count=40)
        treatment = assign_treatment(graph, TreatmentSettings(method="louvain"))
        plain = observe(graph)
        observed = ObservedGraph(plain.model, graph, plain.entities, plain.relations, treatment)
        for h, r, t in graph.triples[:20].tolist():
            case = open_case(observed, h, r, t, "pair")
            if len(case.hidden.triples) < 2:
                continue
            found = find_evidence(case, Matching(a_space(graph), candidates))
            assert found.factual_treatment == case.treated
            smaller = graph.without(graph.triples[case.hidden.triples])
            fresh = assign_treatment(smaller, TreatmentSettings(method="louvain"))
            refitted += bool(fresh.treated_triples(np.array([[h, r, t]]))[0]) != case.treated
            checked += 1
    assert checked > 10
    assert refitted > 0


def test_substitutes_have_the_treatment_that_the_rule_gives_them() -> None:
    """Where pairs are hidden in training, a substitute's treatment is taken without any link of its own ends."""
    differing = 0
    for seed in range(3):
        graph = random_graph(seed, entity_count=8, triple_count=30)
        observed, space = observe(graph), a_space(graph)
        matching = Explainer(observed, "pair", partial(a_space, graph))._matching
        unknown = [[h, 0, t] for h in range(8) for t in range(8) if not graph.contains([[h, 0, t]])[0]]
        for h, r, t in [*graph.triples[:12].tolist(), *unknown[:12]]:
            case = open_case(observed, h, r, t, "pair")
            found = find_evidence(case, matching)
            other = find_evidence(case, Matching(space, "observed"))
            differing += found.substitute != other.substitute
            if found.substitute is None:
                continue
            a, b = ids(found.substitute)
            hidden = (
                [{a, b}, {h, t}] if len(case.hidden.triples) > 1 else [{a, b}]
            )  # further links of the case are gone
            gone = [row for row in graph.triples.tolist() if {row[0], row[2]} in hidden]
            rebuilt = assign_treatment(graph.without(gone), TreatmentSettings())
            assert rebuilt.treated_triples([[a, r, b]])[0] == found.counterfactual_treatment
            assert found.factual_treatment != found.counterfactual_treatment
    assert differing > 0


def test_a_question_for_the_head_has_the_same_substitute() -> None:
    graph = random_graph(0, entity_count=12, triple_count=30)
    observed, matching = observe(graph), Matching(a_space(graph), "observed")
    h, r, t = graph.triples[2].tolist()
    tail = find_evidence(open_case(observed, h, r, t, "triple"), matching)
    head = find_evidence(open_case(observed, t, r + graph.relation_count, h, "triple"), matching)
    assert tail.substitute == head.substitute
    assert tail.factual_probability != head.factual_probability


def test_every_path_edge_has_its_own_treatments() -> None:
    graph = random_graph(0, entity_count=12, triple_count=30)
    observed, space = observe(graph), a_space(graph)
    case = open_case(observed, 0, 0, 3, "triple")
    paths = case.best_paths(8).paths
    found = find_edge_treatments(case, Matching(space, "observed"), paths)
    assert set(found) == {(e.head, e.relation, e.tail) for path in paths for e in path.edges}
    assert observed.treatment is not None
    for path in paths:
        for edge in path.edges:
            triple = graph.triples[[edge.triple]]
            table = match_pairs(triple, graph, space, observed.treatment)
            own = found[edge.head, edge.relation, edge.tail]
            assert own.factual == table.factual_treatments[0]
            assert own.counterfactual == table.counterfactual_treatments[0]
    assert find_edge_treatments(case, Matching(space, "observed"), ()) == {}
