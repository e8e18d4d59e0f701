"""The sparse engine against the dense reference: states, scores and all gradients, to 1e-10."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.propagation.layers.encoder import Encoder
from kgcf.propagation.layers.sparse import propagate
from kgcf.propagation.plan.planner import Plan, Planner

from .batches import Batch, assert_all_close, dense_states, gradients, of_candidates, random_batch
from .random_graphs import random_graph, random_model

MESSAGES = ["distmult", "transe", "rotate"]
AGGREGATES = ["pna", "sum", "mean", "max", "min"]


def plan_of(graph: KnowledgeGraph, batch: Batch, layers: int = 3, meeting: int | None = None) -> Plan:
    return Planner(graph, layers, meeting).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)


def compare(encoder: Encoder, graph: KnowledgeGraph, batch: Batch, compiled: bool = True) -> None:
    dense = dense_states(encoder, graph, batch)
    sparse = propagate(encoder, plan_of(graph, batch, encoder.settings.layers), compiled=compiled)
    assert torch.equal(sparse.reached, of_candidates(dense.reached, batch))
    found, expected = sparse.of_candidates(), of_candidates(dense.states, batch)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    parameters = list(encoder.parameters())
    assert_all_close(gradients(found, parameters), gradients(expected, parameters))


@pytest.mark.parametrize(("message", "aggregate"), list(product(MESSAGES, AGGREGATES)))
@pytest.mark.parametrize("compiled", [True, False])
def test_states_and_gradients_equal_the_dense_ones(message: str, aggregate: str, compiled: bool) -> None:
    for seed, (dependent, width) in enumerate([(False, 8), (True, 8), (False, 6)]):
        graph = random_graph(seed, entity_count=12, triple_count=18, weighted=seed == 1)
        batch = random_batch(seed, graph, remove="pair" if dependent else "triple")
        encoder, _ = random_model(seed, message=message, aggregate=aggregate, dependent=dependent, width=width)
        compare(encoder, graph, batch, compiled)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    triples=st.integers(1, 40),
    remove=st.sampled_from(["triple", "pair", "nothing"]),
    residual=st.booleans(),
    layer_norm=st.booleans(),
    ties=st.booleans(),
    context=st.sampled_from(["none", "layers"]),
    aggregate=st.sampled_from(["pna", "max"]),
)
def test_awkward_graphs_and_ties(
    seed: int, triples: int, remove: str, residual: bool, layer_norm: bool, ties: bool, context: str, aggregate: str
) -> None:
    """Self-loops, parallel edges, hubs, isolated entities; rounded parameters make equal messages abound."""
    graph = random_graph(seed, entity_count=9, triple_count=triples)
    batch = random_batch(seed, graph, remove=remove)
    encoder, _ = random_model(
        seed,
        ties=ties and not layer_norm,
        residual=residual,
        layer_norm=layer_norm,
        context=context,
        aggregate=aggregate,
    )
    compare(encoder, graph, batch)


@pytest.mark.parametrize("aggregate", ["pna", "mean", "min"])
def test_edge_weights_and_their_gradients_equal_the_dense_ones(aggregate: str) -> None:
    graph = random_graph(4, entity_count=12, triple_count=20, weighted=True)
    batch = random_batch(4, graph)
    encoder, _ = random_model(4, aggregate=aggregate, width=8)
    plan = plan_of(graph, batch)
    generator = torch.Generator().manual_seed(4)
    dense_weights = torch.rand(3, 5, graph.edge_count, dtype=torch.float64, generator=generator).requires_grad_()
    places = []
    for layer in plan.layers[1:]:
        queries = np.repeat(layer.queries, np.diff(layer.edge_offsets))
        places.append((torch.from_numpy(queries), torch.from_numpy(layer.entries.astype(np.int64))))
    weights = [dense_weights[depth].detach()[place].requires_grad_() for depth, place in enumerate(places)]
    expected = of_candidates(dense_states(encoder, graph, batch, dense_weights).states, batch)
    wanted = gradients(expected, [dense_weights])[0]
    for compiled in (True, False):
        found = propagate(encoder, plan, weights, compiled).of_candidates()
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
        listed = [wanted[depth][place] for depth, place in enumerate(places)]
        assert_all_close(gradients(found, list(weights)), listed)
        rest = wanted.clone()
        for depth, place in enumerate(places):
            rest[depth][place] = 0
        assert rest.abs().max() < 1e-12  # no other edge matters


@pytest.mark.parametrize(("message", "aggregate"), [("distmult", "pna"), ("transe", "mean"), ("rotate", "max")])
def test_gradcheck(message: str, aggregate: str) -> None:
    graph = random_graph(8, entity_count=8, triple_count=12)
    batch = random_batch(8, graph, size=2)
    encoder, _ = random_model(8, message=message, aggregate=aggregate, layers=2, width=8 if message == "rotate" else 4)
    plan = plan_of(graph, batch, 2)
    parameters = list(encoder.parameters())

    def states(*values: Tensor) -> Tensor:
        """The states as a function of the parameters: torch's own check differentiates it numerically."""
        by_name = dict(zip(dict(encoder.named_parameters()), values, strict=True))
        return call_with(encoder, by_name, lambda: propagate(encoder, plan).of_candidates())

    assert torch.autograd.gradcheck(states, parameters)


def call_with(encoder: Encoder, values: dict[str, Tensor], run: Callable[[], Tensor]) -> Tensor:
    """run() while the encoder's parameters are replaced by other tensors."""
    with torch.nn.utils.stateless._reparametrize_module(encoder, values):
        return run()
