"""Relation histograms against counting by hand."""

import numpy as np
import pytest
import torch

from kgcf.data.graph import KnowledgeGraph
from kgcf.propagation.plan.contexts import all_contexts, collect_contexts

from .batches import Batch, random_batch
from .random_graphs import random_graph


def count_by_hand(graph: KnowledgeGraph, batch: Batch | None, query: int, entity: int) -> list[float]:
    counts = [0] * (2 * graph.relation_count)
    hidden = set() if batch is None else set(batch.hidden.of(query).tolist())
    for index, (head, relation, tail) in enumerate(graph.triples.tolist()):
        if index not in hidden:
            counts[relation] += head == entity
            counts[relation + graph.relation_count] += tail == entity
    return [count / max(sum(counts), 1) for count in counts]


@pytest.mark.parametrize("remove", ["triple", "pair", "nothing"])
def test_contexts_leave_hidden_triples_out(remove: str) -> None:
    for seed in range(8):
        graph = random_graph(seed, relation_count=3)
        batch = random_batch(seed, graph, remove=remove)
        contexts = collect_contexts(graph, batch.hidden, np.arange(5)[:, None], batch.candidates)
        table = contexts.project(torch.eye(6, dtype=torch.float64))[contexts.row_tensor(torch.zeros(1))]
        for query, k in np.ndindex(*batch.candidates.shape):
            expected = count_by_hand(graph, batch, query, int(batch.candidates[query, k]))
            torch.testing.assert_close(table[query, k], torch.tensor(expected, dtype=torch.float64))


def test_rows_are_shared_by_the_queries_that_hide_nothing_of_an_entity() -> None:
    graph = KnowledgeGraph.build([(0, 0, 1), (1, 0, 2), (2, 0, 3)], 4, 1)
    batch = Batch(np.array([0, 0]), np.array([0, 0]), np.array([[1, 3], [2, 3]]), random_batch(0, graph, 2).hidden)
    everybody = collect_contexts(graph, None, np.arange(2)[:, None], np.arange(4))
    assert len(everybody) == 4
    hiding = collect_contexts(graph, batch.hidden, np.arange(2)[:, None], np.arange(4))
    assert len(hiding) <= 4 + 4  # two queries hide one triple each: two ends each


def test_all_contexts_hold_each_distinct_histogram_once() -> None:
    graph = random_graph(2, entity_count=30, relation_count=3)
    contexts = all_contexts(graph)
    distinct = {tuple(count_by_hand(graph, None, 0, entity)) for entity in range(30)}
    assert len(contexts) == len(distinct) < 30
    table = contexts.project(torch.eye(6, dtype=torch.float64))
    for entity in range(graph.entity_count):
        expected = torch.tensor(count_by_hand(graph, None, 0, entity), dtype=torch.float64)
        torch.testing.assert_close(table[contexts.rows[entity]], expected)


@pytest.mark.parametrize("seed", range(4))
def test_projecting_rows_equals_multiplying_the_dense_table(seed: int) -> None:
    """Values and gradients, in both precisions, with isolated entities and hidden triples."""
    graph = random_graph(seed, entity_count=25, relation_count=3, triple_count=20)
    batch = random_batch(seed, graph, remove="pair")
    everybody = np.arange(25)
    contexts = collect_contexts(graph, batch.hidden, np.arange(5)[:, None], everybody)
    table = torch.tensor(
        [[count_by_hand(graph, batch, b, v) for v in range(25)] for b in range(5)], dtype=torch.float64
    )
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        weight = torch.randn(7, 6, generator=torch.Generator().manual_seed(seed), dtype=dtype, requires_grad=True)
        found = contexts.project(weight)[contexts.row_tensor(weight)]
        expected = table.to(dtype) @ weight.T
        torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)
        slopes = torch.rand_like(expected)
        gradients = [torch.autograd.grad(values, weight, slopes)[0] for values in (found, expected)]
        torch.testing.assert_close(*gradients, rtol=0, atol=100 * tolerance)


def test_rows_are_grouped_exactly_however_many_there_are() -> None:
    generator = np.random.default_rng(0)
    ends, kinds = generator.integers(0, 4000, (6000, 2)), generator.integers(0, 3, 6000)
    graph = KnowledgeGraph.build(np.stack([ends[:, 0], kinds, ends[:, 1]], axis=1), 4000, 3)
    contexts = all_contexts(graph)
    counts = np.zeros((4000, 6))
    np.add.at(counts, (graph.triples[:, 0], graph.triples[:, 1]), 1)
    np.add.at(counts, (graph.triples[:, 2], graph.triples[:, 1] + 3), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    assert len(contexts) == len(np.unique(shares, axis=0)) < 1000
    table = contexts.project(torch.eye(6, dtype=torch.float64)).numpy()
    np.testing.assert_array_equal(table[contexts.rows], shares)


def test_rows_with_the_same_relations_and_other_shares_stay_apart() -> None:
    """400 entities with 1, 2, … edges of one relation and one of another: many meet in the table of groups."""
    owners, tails = np.tril_indices(400)
    many = np.stack([owners, np.zeros_like(owners), 400 + tails], axis=1)
    one = np.stack([np.arange(400), np.ones(400, np.int64), np.full(400, 800)], axis=1)
    contexts = all_contexts(KnowledgeGraph.build(np.concatenate([many, one]), 801, 2))
    assert len(contexts) == 400 + 2  # the tails of one relation look alike
    shares = contexts.project(torch.eye(4, dtype=torch.float64))[contexts.rows[:400], 0]
    degrees = np.arange(1, 401)
    np.testing.assert_allclose(shares, degrees / (degrees + 1), rtol=1e-15)
