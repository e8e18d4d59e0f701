"""Attempts to break the sparse engine: drawn models on drawn graphs, arbitrary hidden sets, nothing to compute."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, hide_nothing, hide_pairs, hide_triples
from kgcf.model.all_entities import score_all
from kgcf.model.decoder import Decoder, rank_reached_first
from kgcf.model.dense_scores import score_densely
from kgcf.model.kgcf import candidate_contexts
from kgcf.propagation.dense.propagation import DenseEdges, propagate_densely
from kgcf.propagation.layers.encoder import Encoder
from kgcf.propagation.layers.sparse import propagate
from kgcf.propagation.plan.planner import Budget, Planner

from .batches import Batch, assemble, assert_all_close, assert_exact, gradients, sparse_logits
from .random_graphs import random_model


def draw_graph(rng: np.random.Generator) -> KnowledgeGraph:
    """Anything from one entity without an edge to a star, a ring or a thicket; every linked pair has its weight."""
    entity_count, relation_count = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    triple_count = int(rng.integers(0, 3 * entity_count + 2))
    triples = rng.integers(0, [entity_count, relation_count, entity_count], (triple_count, 3))
    shape = rng.integers(4)
    if shape == 1:
        triples[:, 2] = (triples[:, 0] + 1) % entity_count
    elif shape == 2:
        triples[:, 0] = 0
    elif shape == 3:
        triples[:, [0, 2]] //= 2
    pairs = rng.normal(0, 1, (entity_count, entity_count)) * (rng.random((entity_count, entity_count)) < 0.95)
    ends = np.sort(triples[:, [0, 2]], axis=1)
    return KnowledgeGraph.build(triples, entity_count, relation_count, pairs[ends[:, 0], ends[:, 1]])


def draw_batch(rng: np.random.Generator, graph: KnowledgeGraph) -> Batch:
    """Queries, most of them about triples of the graph; the hidden sets are the two rules, nothing, or anything."""
    size, width = int(rng.integers(0, 6)), int(rng.integers(1, 5))
    heads, relations = rng.integers(0, graph.entity_count, size), rng.integers(0, 2 * graph.relation_count, size)
    candidates = rng.integers(0, graph.entity_count, (size, width))
    if len(graph):
        asked, turned = rng.integers(0, len(graph), size), rng.random(size) < 0.5
        triples, real = graph.triples[asked].astype(np.int64), rng.random(size) < 0.8
        heads = np.where(real, np.where(turned, triples[:, 2], triples[:, 0]), heads)
        relations = np.where(real, triples[:, 1] + turned * graph.relation_count, relations)
        candidates[:, 0] = np.where(real, np.where(turned, triples[:, 0], triples[:, 2]), candidates[:, 0])
    rules: list[Callable[[], HiddenTriples]] = [
        lambda: hide_triples(graph, heads, relations, candidates[:, 0]),
        lambda: hide_pairs(graph, heads, candidates),
        lambda: hide_nothing(size),
        lambda: hide_anything(rng, graph, size),
    ]
    return Batch(heads, relations, candidates, rules[rng.integers(4)]())


def hide_anything(rng: np.random.Generator, graph: KnowledgeGraph, size: int) -> HiddenTriples:
    """A random share of the graph for every query, from nothing to everything."""
    share = rng.choice([0.05, 0.5, 1.0])
    chosen = rng.random((size, len(graph))) < share
    offsets = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int64)
    return HiddenTriples(offsets, np.nonzero(chosen)[1].astype(np.int32))


def draw_model(rng: np.random.Generator, graph: KnowledgeGraph) -> tuple[Encoder, Decoder]:
    return random_model(
        int(rng.integers(2**31)),
        graph.relation_count,
        treatment=bool(rng.integers(2)),
        ties=bool(rng.integers(2)),
        layers=int(rng.integers(1, 6)),
        width=int(rng.choice([2, 4, 6, 8, 16])),
        message=str(rng.choice(["distmult", "transe", "rotate"])),
        aggregate=str(rng.choice(["pna", "pna", "sum", "mean", "max", "min"])),
        context=str(rng.choice(["none", "unreached", "decoder", "layers"])),
        dependent=bool(rng.integers(2)),
        residual=bool(rng.integers(2)),
        layer_norm=bool(rng.integers(2)),
    )


def draw_treated(rng: np.random.Generator, decoder: Decoder, shape: tuple[int, int]) -> NDArray[np.bool_] | None:
    return rng.random(shape) < 0.5 if decoder.treatment else None


def check_one(seed: int) -> None:
    """States, logits, gradients, ranking, budgets and edge weights of one drawn case."""
    rng = np.random.default_rng(seed)
    graph = draw_graph(rng)
    batch = draw_batch(rng, graph)
    encoder, decoder = draw_model(rng, graph)
    everybody = draw_treated(rng, decoder, (len(batch.heads), graph.entity_count))
    queries = np.arange(len(batch.heads))[:, None]
    treated = None if everybody is None else torch.from_numpy(everybody[queries, batch.candidates])
    edges = DenseEdges.build(graph, encoder.query.weight)
    given = edges, torch.from_numpy(batch.heads), torch.from_numpy(batch.relations), batch.hidden
    dense = propagate_densely(encoder, *given)
    logits = score_densely(decoder, dense, None if everybody is None else torch.from_numpy(everybody))
    layers = encoder.settings.layers
    planner = Planner(graph, layers, None if rng.integers(2) else int(rng.integers(0, layers + 1)))
    expected = logits[queries, batch.candidates]
    _check_candidates(encoder, decoder, planner, batch, treated, expected)
    _check_parts(encoder, decoder, planner, batch, treated, expected, Budget(float(rng.integers(1, 100_000))))
    ranking = planner.plan(batch.heads, batch.relations, None, batch.hidden)
    for compiled in (True, False):
        scores = score_all(encoder, decoder, ranking, everybody, compiled=compiled)
        assert_exact(scores, rank_reached_first(logits.detach(), dense.reached))
    weights = torch.from_numpy(rng.normal(0, 1, (layers, len(batch.heads), graph.edge_count))).requires_grad_()
    states = propagate_densely(encoder, *given, edge_weights=weights).states[queries, batch.candidates]
    _check_edge_weights(encoder, planner, batch, weights, states)


def _check_candidates(
    encoder: Encoder, decoder: Decoder, planner: Planner, batch: Batch, treated: Tensor | None, expected: Tensor
) -> None:
    parameters = [*encoder.parameters(), *decoder.parameters()]
    wanted = gradients(expected, parameters)
    plan = planner.plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    for compiled in (True, False):
        result = propagate(encoder, plan, compiled=compiled)
        context = candidate_contexts(decoder, plan, result.queries)
        reached = result.reached if decoder.variant == "unreached" else None
        found = decoder(result.of_candidates(), result.queries.unsqueeze(1), treated, context, reached)
        assert_exact(found, expected)
        assert_all_close(gradients(found, parameters), wanted)


def _check_parts(
    encoder: Encoder,
    decoder: Decoder,
    planner: Planner,
    batch: Batch,
    treated: Tensor | None,
    expected: Tensor,
    budget: Budget,
) -> None:
    found = []
    for plan in planner.parts(batch.heads, batch.relations, batch.candidates, batch.hidden, budget):
        own = None if treated is None else treated[plan.first : plan.first + len(plan)]
        found.append(sparse_logits(encoder, decoder, plan, own))
    assert_exact(torch.cat(found), expected)


def _check_edge_weights(encoder: Encoder, planner: Planner, batch: Batch, weights: Tensor, expected: Tensor) -> None:
    plan = planner.plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    wanted = gradients(expected, [weights])
    for compiled in (True, False):
        chosen = []
        for depth, layer in enumerate(plan.layers[1:]):
            queries = np.repeat(layer.queries, np.diff(layer.edge_offsets))
            chosen.append(weights[depth][torch.from_numpy(queries), torch.from_numpy(layer.entries.astype(np.int64))])
        found = propagate(encoder, plan, chosen, compiled).of_candidates()
        assert_exact(found, expected)
        assert_all_close(gradients(found, [weights]), wanted)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_nothing_differs_from_the_dense_reference(seed: int) -> None:
    check_one(seed)


@pytest.mark.slow
def test_nothing_differs_from_the_dense_reference_in_many_cases() -> None:
    for seed in range(600):
        check_one(seed)


@pytest.mark.parametrize("width", [4, 6, 32])
@pytest.mark.parametrize("message", ["distmult", "rotate"])
def test_a_batch_that_reaches_nothing_has_scores(width: int, message: str) -> None:
    """All candidates are unreachable: every layer of the plan is empty, also where the width has to be padded."""
    graph = KnowledgeGraph.build([[0, 0, 1], [2, 0, 3]], 5, 1)
    for dtype in (torch.float32, torch.float64):
        encoder, decoder = random_model(0, 1, dtype=dtype, width=width, message=message, context="unreached")
        plan = Planner(graph, 3).plan([0, 4], [0, 1], [[2, 3], [0, 1]])
        assert plan.slot_count == 0
        assert not assemble(encoder, decoder).encode(plan).reached.any()
        edges = DenseEdges.build(graph, encoder.query.weight)
        logits = score_densely(decoder, propagate_densely(encoder, edges, torch.tensor([0, 4]), torch.tensor([0, 1])))
        torch.testing.assert_close(sparse_logits(encoder, decoder, plan), logits[[[0], [1]], [[2, 3], [0, 1]]])


@pytest.mark.parametrize("dependent", [False, True])
def test_an_empty_batch_has_empty_scores(dependent: bool) -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [2, 0, 3]], 5, 1)
    encoder, decoder = random_model(0, 1, dependent=dependent, context="unreached", width=6)
    planner = Planner(graph, 3)
    training = planner.plan([], [], np.zeros((0, 3)))
    assert sparse_logits(encoder, decoder, training).shape == (0, 3)
    for compiled in (True, False):
        assert score_all(encoder, decoder, planner.plan([], [], None), compiled=compiled).shape == (0, 5)
