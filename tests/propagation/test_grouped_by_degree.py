"""Grouping slots by degree changes the arithmetic of ranking, not its result."""

import numpy as np
import pytest
import torch

from kgcf.propagation.layers import grouped_by_degree as inference
from kgcf.propagation.layers.sparse import propagate
from kgcf.propagation.plan.planner import Planner

from .batches import assert_exact, random_batch
from .random_graphs import random_graph, random_model


@pytest.mark.parametrize("smallest", [1, 3, 10**6])
@pytest.mark.parametrize("context", ["none", "layers"])
def test_states_equal_those_of_the_layer_with_gradients(
    smallest: int, context: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(3, entity_count=60, triple_count=90, weighted=True)
    batch = random_batch(3, graph, size=4)
    encoder, _ = random_model(3, context=context, width=8, residual=context == "none", layer_norm=smallest != 3)
    plan = Planner(graph, 3).plan(batch.heads, batch.relations, None)
    expected = propagate(encoder, plan).states
    monkeypatch.setattr(inference.advance_by_degree, "__defaults__", (smallest,))
    with torch.no_grad():
        assert inference.can_group(encoder.steps()[0], plan, expected)
        assert_exact(propagate(encoder, plan).states, expected.detach())


def test_queries_that_see_different_graphs_are_not_grouped() -> None:
    graph = random_graph(3, entity_count=60, triple_count=90)
    batch = random_batch(3, graph, size=4, remove="pair")
    encoder, _ = random_model(3)
    plan = Planner(graph, 3).plan(batch.heads, batch.relations, None, batch.hidden)
    assert len(np.unique(plan.mean_log_degrees)) > 1
    with torch.no_grad():
        assert not inference.can_group(encoder.steps()[0], plan, encoder.query.weight)


def test_slots_of_frequent_degrees_lie_side_by_side() -> None:
    degrees = np.array([2, 7, 2, 3, 2, 3, 9], np.int32)
    places, offsets, examples = inference._group_by_degree(degrees, 2)
    assert offsets.tolist() == [0, 3, 5, 7]
    assert sorted(places.tolist()) == list(range(7))
    assert degrees[np.argsort(places)].tolist() == [2, 2, 2, 3, 3, 7, 9]
    assert degrees[examples].tolist() == [2, 3]
