"""Plans in nbfnet semantics against the dense reference: states, scores and gradients, to 1e-10."""

from itertools import product

import numpy as np
import pytest
import torch

from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import SettingsError
from kgcf.model.all_entities import score_all
from kgcf.model.dense_scores import score_densely
from kgcf.propagation.dense.propagation import DenseEdges, DenseStates, propagate_densely
from kgcf.propagation.layers.encoder import Encoder
from kgcf.propagation.layers.sparse import propagate
from kgcf.propagation.plan.planner import Budget, Planner, Thinning

from .batches import Batch, assert_all_close, gradients, of_candidates, random_batch
from .random_graphs import random_graph, random_model

MESSAGES = ["distmult", "transe", "rotate"]


def everybody(graph: KnowledgeGraph, layers: int = 3) -> Planner:
    return Planner(graph, layers, everybody=True)


def published(encoder: Encoder, graph: KnowledgeGraph, batch: Batch) -> DenseStates:
    edges = DenseEdges.build(graph, encoder.query.weight)
    asked = torch.from_numpy(batch.heads), torch.from_numpy(batch.relations)
    return propagate_densely(encoder, edges, *asked, batch.hidden, semantics="nbfnet")


@pytest.mark.parametrize(("message", "aggregate"), [*product(MESSAGES, ["pna", "max"]), ("distmult", "mean")])
@pytest.mark.parametrize("compiled", [True, False])
def test_states_and_gradients_equal_the_dense_ones(message: str, aggregate: str, compiled: bool) -> None:
    for seed, (remove, context) in enumerate([("triple", "none"), ("pair", "layers"), ("nothing", "none")]):
        graph = random_graph(seed, entity_count=14, triple_count=20, weighted=seed != 1)
        batch = random_batch(seed, graph, remove=remove)
        encoder, _ = random_model(
            seed, message=message, aggregate=aggregate, context=context, width=8, dependent=seed == 2
        )
        plan = everybody(graph).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
        found = propagate(encoder, plan, compiled=compiled)
        assert bool(found.reached.all())
        expected = of_candidates(published(encoder, graph, batch).states, batch)
        torch.testing.assert_close(found.of_candidates(), expected, rtol=1e-10, atol=1e-10)
        parameters = list(encoder.parameters())
        if seed != 1:  # without weights entities look alike, and their gradients may differ by who is the largest
            assert_all_close(gradients(found.of_candidates(), parameters), gradients(expected, parameters))


@pytest.mark.parametrize("context", ["none", "decoder", "layers"])
@pytest.mark.parametrize("message", MESSAGES)
def test_rankings_equal_the_dense_logits(message: str, context: str) -> None:
    graph = random_graph(5, entity_count=60, triple_count=80, weighted=False)
    encoder, decoder = random_model(5, message=message, context=context, width=8)
    batch = random_batch(5, graph, remove="triple")
    dense = score_densely(decoder, published(encoder, graph, batch))
    plan = everybody(graph).plan(batch.heads, batch.relations, None, batch.hidden)
    torch.testing.assert_close(score_all(encoder, decoder, plan), dense, rtol=1e-10, atol=1e-10)


def test_what_is_hidden_is_not_there() -> None:
    """The same scores as on a graph that never had it."""
    graph = random_graph(3, entity_count=20, triple_count=40)
    encoder, decoder = random_model(3, width=8)
    batch = random_batch(3, graph, remove="pair")
    plan = everybody(graph).plan(batch.heads, batch.relations, None, batch.hidden)
    together = score_all(encoder, decoder, plan)
    seen = score_all(encoder, decoder, everybody(graph).plan(batch.heads, batch.relations, None))
    for row in range(len(batch.heads)):
        left = graph.without(graph.triples[batch.hidden.of(row)])
        alone = everybody(left).plan(batch.heads[row : row + 1], batch.relations[row : row + 1], None)
        torch.testing.assert_close(together[row], score_all(encoder, decoder, alone)[0], rtol=1e-10, atol=1e-10)
    assert not torch.allclose(together, seen)


def test_candidates_alone_cost_less_than_everybody() -> None:
    """A chain: one candidate needs its surroundings, whoever the head is."""
    chain = KnowledgeGraph.build(np.stack([np.arange(40), np.zeros(40, int), np.arange(1, 41)], axis=1), 41, 1)
    plan = everybody(chain).plan([0], [0], [[20]])
    assert [layer.entities.tolist() for layer in plan.layers[1:]] == [[18, 19, 20, 21, 22], [19, 20, 21], [20]]
    whole = everybody(chain).plan([0], [0], None)
    assert [len(layer.entities) for layer in whole.layers] == [41] * 4
    assert all(layer.heads.tolist() == [-1] for layer in plan.layers)
    assert whole.layers[0].heads.tolist() == [0]


def test_parts_that_a_budget_makes_are_the_whole() -> None:
    graph = random_graph(7, entity_count=20, triple_count=40)
    encoder, _ = random_model(7, width=8)
    batch = random_batch(7, graph, size=6)
    asked = batch.heads, batch.relations, batch.candidates, batch.hidden
    whole = everybody(graph).plan(*asked)
    budget = Budget(Budget(width=8).cost(whole) / 2.5, width=8)
    parts = list(everybody(graph).parts(*asked, budget))
    assert len(parts) > 2
    assert [plan.first for plan in parts] == np.cumsum([0, *(len(plan) for plan in parts)])[:-1].tolist()
    states = torch.cat([propagate(encoder, plan).of_candidates() for plan in parts])
    torch.testing.assert_close(states, propagate(encoder, whole).of_candidates(), rtol=1e-12, atol=1e-12)
    with pytest.raises(SettingsError, match=r"20 entities in each of 3 layers: one question would take .* GB"):
        list(everybody(graph).parts(*asked, Budget(1e3, width=8)))


def test_nothing_asked_and_an_empty_graph_are_planned_too() -> None:
    graph = random_graph(0)
    none = np.zeros(0, np.int64)
    assert len(everybody(graph).plan(none, none, np.zeros((0, 2)))) == 0
    empty = KnowledgeGraph.build(np.zeros((0, 3), int), 4, 2)
    encoder, _ = random_model(0)
    assert bool(propagate(encoder, everybody(empty).plan([1], [0], [[0, 3]])).of_candidates().isfinite().all())


def test_a_draw_of_edges_is_refused() -> None:
    graph = random_graph(1, triple_count=30)
    with pytest.raises(SettingsError, match="leave training.fan_in out"):
        list(everybody(graph).parts([0], [0], [[1]], thinning=Thinning(1, np.zeros(1, np.uint64))))
