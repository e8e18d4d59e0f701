from typing import Any

import numpy as np
import pytest
import torch

from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import SettingsError
from kgcf.explanation import importance
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.importance import STEPS, encode_weighted, weigh_edges
from tests.propagation.random_graphs import random_graph

from .path_oracle import dense_importance, path_weight
from .test_case import observe


def cases(**choices: Any) -> list[Case]:
    graph = random_graph(3, triple_count=22)
    observed = observe(graph, treatment=False, **choices)
    asked = [open_case(observed, h, r, t, "triple", attribution="integrated") for h, r, t in graph.triples[:8].tolist()]
    return [case for case in asked if case.best_paths(1).paths]


@pytest.mark.parametrize("aggregate", ["pna", "sum"])
def test_integrated_importance_is_the_mean_of_dense_gradients_between_no_message_and_all(aggregate: str) -> None:
    compared = 0
    for case in cases(aggregate=aggregate):
        asked, graph, model = (case.head, case.relation, case.tail), case.observed.graph, case.observed.model
        found = [dense_importance(model, graph, asked, case.hidden, None, (i + 0.5) / STEPS)[1] for i in range(STEPS)]
        logit, _ = dense_importance(model, graph, asked, case.hidden, None)
        assert case.importance.logit == pytest.approx(logit, abs=1e-10)
        for path in case.best_paths(20).paths:
            steps = tuple((edge.head, edge.relation, edge.tail) for edge in path.edges)
            assert path.weight == pytest.approx(path_weight(graph, np.mean(found, axis=0), steps, True), abs=1e-10)
            compared += 1
    assert compared > 10


def test_integrated_importance_adds_up_to_the_logit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all messages together add to the logit is what their importance sums to, the finer the steps the closer."""
    asked = cases(layer_norm=False, aggregate="sum")[:3]  # a layer norm is steep where messages vanish
    monkeypatch.setattr(importance, "STEPS", 150)
    for case in asked:
        model = case.observed.model
        nothing = [torch.full((len(step.sources),), 1e-9, dtype=torch.float64) for step in case.plan.layers[1:]]
        with torch.no_grad():
            before = float(model.decode(encode_weighted(model, case.plan, nothing), None)[0, 0])
        fine = weigh_edges(model, case.plan, None, "integrated")
        assert fine.values.sum() == pytest.approx(fine.logit - before, abs=0.02 * abs(fine.logit - before) + 1e-3)


def test_attribution_is_one_of_two_and_reaches_the_explanation() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 2]], 3, 1)
    observed = observe(graph, treatment=False)
    with pytest.raises(SettingsError, match="no attribution called 'random'. Choices: gradient, integrated"):
        open_case(observed, 0, 0, 2, "triple", attribution="random")  # type: ignore[arg-type]
    plain = open_case(observed, 0, 0, 2, "triple")
    integrated = open_case(observed, 0, 0, 2, "triple", attribution="integrated")
    assert plain.importance.logit == pytest.approx(integrated.importance.logit, abs=1e-12)
    assert plain.best_paths(1).paths[0].weight != integrated.best_paths(1).paths[0].weight


def test_an_unreached_candidate_has_no_importance_either_way() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [2, 0, 3]], 4, 1)
    case = open_case(observe(graph, treatment=False), 0, 0, 3, "triple", attribution="integrated")
    assert not case.importance.reached
    assert not case.importance.values.any()
