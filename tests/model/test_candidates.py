"""Scores of plans: equal to the dense ones, and independent of everything that must not matter."""

import numpy as np
import pytest
import torch
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import hide_nothing, hide_triples
from kgcf.model.all_entities import make_background, reads_contexts, score_all
from kgcf.model.decoder import Decoder, rank_reached_first
from kgcf.model.dense_scores import score_densely
from kgcf.propagation.layers.encoder import Encoder
from kgcf.propagation.plan.contexts import all_contexts
from kgcf.propagation.plan.planner import Planner
from tests.propagation.batches import (
    Batch,
    assert_all_close,
    assert_exact,
    dense_logits,
    dense_states,
    gradients,
    of_candidates,
    random_batch,
    sparse_logits,
)
from tests.propagation.random_graphs import random_graph, random_model

CONTEXTS = ["none", "unreached", "decoder", "layers"]


def graph_and_batch(seed: int, remove: str = "pair") -> tuple[KnowledgeGraph, Batch]:
    graph = random_graph(seed, entity_count=20, relation_count=3, triple_count=26)
    return graph, random_batch(seed, graph, size=6, remove=remove)


def batch_logits(
    encoder: Encoder,
    decoder: Decoder,
    graph: KnowledgeGraph,
    batch: Batch,
    treated: Tensor | None = None,
    meeting: int | None = None,
) -> Tensor:
    planner = Planner(graph, encoder.settings.layers, meeting)
    plan = planner.plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    return sparse_logits(encoder, decoder, plan, treated)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("treatment", [False, True])
def test_candidate_scores_and_gradients_equal_the_dense_ones(context: str, treatment: bool) -> None:
    for seed in range(3):
        graph, batch = graph_and_batch(seed, "triple" if seed else "pair")
        encoder, decoder = random_model(seed, 3, treatment, context=context)
        everybody = torch.rand(6, 20, generator=torch.Generator().manual_seed(seed)) < 0.5 if treatment else None
        expected = of_candidates(dense_logits(encoder, decoder, graph, batch, everybody), batch)
        treated = None if everybody is None else of_candidates(everybody, batch)
        found = batch_logits(encoder, decoder, graph, batch, treated)
        assert_exact(found, expected)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        assert_all_close(gradients(found, parameters), gradients(expected, parameters))


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("treatment", [False, True])
@pytest.mark.parametrize("remove", ["nothing", "triple"])
def test_ranking_scores_equal_the_dense_ones(context: str, treatment: bool, remove: str) -> None:
    graph, batch = graph_and_batch(11, remove)
    encoder, decoder = random_model(11, 3, treatment, context=context)
    treated = np.random.default_rng(11).random((6, 20)) < 0.5 if treatment else None
    dense = dense_states(encoder, graph, batch)
    flags = None if treated is None else torch.from_numpy(treated)
    expected = rank_reached_first(score_densely(decoder, dense, flags), dense.reached)
    plan = Planner(graph, 3).plan(batch.heads, batch.relations, None, batch.hidden)
    kept = make_background(decoder, 20, all_contexts(graph) if reads_contexts(decoder) else None)
    for background, compiled in ((None, True), (kept, True), (None, False), (kept, False)):
        found = score_all(encoder, decoder, plan, treated, background, compiled)
        assert_exact(found, expected)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("remove", ["triple", "pair"])
def test_training_scores_equal_ranking_scores_on_a_graph_without_the_hidden_set(context: str, remove: str) -> None:
    graph, batch = graph_and_batch(5, remove)
    encoder, decoder = random_model(5, 3, context=context)
    found = batch_logits(encoder, decoder, graph, batch)
    for query in range(len(batch.heads)):
        rebuilt = graph.without(graph.triples[batch.hidden.of(query)])
        plan = Planner(rebuilt, 3).plan(batch.heads[query : query + 1], batch.relations[query : query + 1], None)
        scores = score_all(encoder, decoder, plan)[0]
        entities = torch.from_numpy(batch.candidates[query])
        # ranking may move the unreached down together: compare reached ones, and the unreached among themselves
        reached = torch.zeros(20, dtype=torch.bool)
        reached[torch.from_numpy(plan.layers[-1].entities.astype(np.int64))] = True
        mine, seen = found[query], reached[entities]
        assert_exact(mine[seen], scores[entities][seen])
        rest = (mine - scores[entities])[~seen]
        assert_exact(rest - rest[:1], torch.zeros_like(rest))


@pytest.mark.parametrize("context", ["unreached", "layers"])
def test_neither_the_batch_nor_the_meeting_depth_matters(context: str) -> None:
    graph, batch = graph_and_batch(7)
    encoder, decoder = random_model(7, 3, context=context)
    whole = batch_logits(encoder, decoder, graph, batch)
    for query in range(len(batch.heads)):
        alone = batch_logits(encoder, decoder, graph, batch.take(slice(query, query + 1)))
        assert_exact(alone[0], whole[query])
    for meeting in range(4):
        assert_exact(batch_logits(encoder, decoder, graph, batch, meeting=meeting), whole)


def test_relabelling_entities_permutes_the_scores() -> None:
    graph, batch = graph_and_batch(13)
    encoder, decoder = random_model(13, 3, context="unreached")
    names = np.random.default_rng(0).permutation(20)
    renamed = KnowledgeGraph.build(graph.triples[:, [0, 1, 2]] * [0, 1, 0] + _ends(graph, names), 20, 3, graph.weights)
    tails = batch.candidates[:, 0]
    twin = Batch(
        names[batch.heads],
        batch.relations,
        names[batch.candidates],
        hide_triples(renamed, names[batch.heads], batch.relations, names[tails]),
    )
    original = Batch(
        batch.heads,
        batch.relations,
        batch.candidates,
        hide_triples(graph, batch.heads, batch.relations, tails),
    )
    assert_exact(batch_logits(encoder, decoder, renamed, twin), batch_logits(encoder, decoder, graph, original))
    plan = Planner(renamed, 3).plan(twin.heads, twin.relations, None, hide_nothing(6))
    ranked = score_all(encoder, decoder, Planner(graph, 3).plan(batch.heads, batch.relations, None))
    assert_exact(score_all(encoder, decoder, plan)[:, names], ranked)


def _ends(
    graph: KnowledgeGraph, names: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    ends = np.zeros((len(graph), 3), np.int64)
    ends[:, 0], ends[:, 2] = names[graph.triples[:, 0]], names[graph.triples[:, 2]]
    return ends
