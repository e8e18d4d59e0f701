import numpy as np
import pytest

from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import hide_triples
from kgcf.data.vocabulary import Vocabulary
from kgcf.explanation.case import open_case
from kgcf.prediction.observed_graph import ObservedGraph
from tests.propagation.random_graphs import random_graph

from .path_oracle import small_model


def observe(graph: KnowledgeGraph, seed: int = 0, treatment: bool = True, **choices: object) -> ObservedGraph:
    model = small_model(seed, graph.relation_count, treatment=treatment, **choices)
    assigned = assign_treatment(graph, TreatmentSettings()) if treatment else None
    vocabularies = Vocabulary.numbered(graph.entity_count), Vocabulary.numbered(graph.relation_count)
    return ObservedGraph(model, graph, *vocabularies, assigned)


@pytest.mark.parametrize("context", ["none", "unreached", "decoder", "layers"])
def test_a_known_triple_is_explained_as_on_a_graph_without_it(context: str) -> None:
    graph = random_graph(0, triple_count=22)
    for h, r, t in graph.triples[:12].tolist():
        case = open_case(observe(graph, context=context), h, r, t, "triple")
        fresh = open_case(observe(graph.without([[h, r, t]]), context=context), h, r, t, "triple")
        assert case.known
        assert not fresh.known
        assert case.treated == fresh.treated
        assert case.importance.logit == pytest.approx(fresh.importance.logit, abs=1e-10)
        weights = [[path.weight for path in found.best_paths(9).paths] for found in (case, fresh)]
        np.testing.assert_allclose(weights[0], weights[1], atol=1e-10)


def test_with_remove_pair_every_link_of_the_two_is_hidden() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 2], [2, 1, 1]], 3, 2)
    observed = observe(graph)
    case = open_case(observed, 0, 0, 1, "pair")
    assert sorted(case.hidden.triples) == [0, 1, 2]
    assert [path.triples for path in case.best_paths(9).paths] == [(3, 4)]
    assert sorted(open_case(observed, 0, 0, 1, "triple").hidden.triples) == [0]
    assert len(open_case(observed, 1, 0, 0, "pair").hidden.triples) == 0  # not in the graph: nothing to hide


def test_a_question_for_the_head_is_its_own_question() -> None:
    graph = random_graph(0, triple_count=22)
    observed = observe(graph)
    h, r, t = graph.triples[3].tolist()
    case = open_case(observed, t, r + graph.relation_count, h, "triple")
    assert case.triple == (h, r, t)
    hidden = hide_triples(graph, [h], [r], [t])
    expected = observed.logits(np.array([t]), np.array([r + graph.relation_count]), np.array([[h]]), hidden)[0][0, 0]
    assert case.importance.logit == pytest.approx(expected, abs=1e-12)
    assert all(path.edges[0].head == t and path.edges[-1].tail == h for path in case.best_paths(5).paths)


@pytest.mark.parametrize("context", ["unreached", "decoder", "layers"])
def test_removal_equals_a_graph_rebuilt_without_the_triples_except_that_treatment_stays(context: str) -> None:
    graph = random_graph(1, triple_count=22)
    observed = observe(graph, context=context)
    flipped = compared = 0
    for h, r, t in graph.triples[:10].tolist():
        case = open_case(observed, h, r, t, "triple")
        removals = [np.array(path.triples) for path in case.best_paths(4).paths]
        if not removals:
            continue
        logits, reached = case.logits_without(removals)
        for i, removed in enumerate(removals):
            smaller = graph.without(graph.triples[[*case.hidden.triples, *removed]])
            fresh = open_case(observe(smaller, context=context), h, r, t, "triple")
            assert case.treated is not None
            assert logits[i] == pytest.approx(fresh.logits_under([case.treated])[0], abs=1e-10)
            assert reached[i] == fresh.importance.reached
            flipped += fresh.treated != case.treated
            compared += 1
    assert compared > 10
    assert flipped  # so that it was tested that T stays


def test_flipping_the_treatment_changes_only_the_decoder() -> None:
    graph = random_graph(2, triple_count=22)
    case = open_case(observe(graph), 0, 0, 3, "triple")
    assert case.treated is not None
    both = case.logits_under([False, True])
    assert both[case.treated] == pytest.approx(case.importance.logit, abs=1e-12)
    assert both[0] != both[1]


def test_a_model_without_treatment_has_none() -> None:
    graph = random_graph(2, triple_count=22)
    case = open_case(observe(graph, treatment=False), 0, 0, 3, "triple")
    assert case.treated is None
    assert len(case.logits_without([np.zeros(0, np.int64)])[0]) == 1
