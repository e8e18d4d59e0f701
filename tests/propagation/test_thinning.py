"""A fan-in: an update aggregates a uniform draw of its reached edges; where there are no more, nothing changes."""

import numpy as np
import pytest
import torch

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
from kgcf.errors import DataError
from kgcf.propagation.layers.sparse import propagate
from kgcf.propagation.plan.planner import Budget, Plan, Planner, Thinning

from .batches import Batch, assert_all_close, assert_exact, gradients, random_batch
from .random_graphs import random_graph, random_model
from .test_plan import assert_same, check, edges_of

LAYERS = 3


def keys(count: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.random.default_rng(seed).integers(0, 2**63, count, np.uint64)


def hub_graph(seed: int = 1) -> tuple[KnowledgeGraph, Batch]:
    graph = random_graph(seed, entity_count=40, triple_count=160)
    return graph, random_batch(seed, graph, size=8, remove="pair")


def plan_with(planner: Planner, batch: Batch, thinning: Thinning | None) -> Plan:
    return planner.plan(batch.heads, batch.relations, batch.candidates, batch.hidden, thinning)


def as_sets(plan: Plan, depth: int, query: int) -> list[tuple[int, int, int]]:
    return sorted(edges_of(plan, depth, query).elements())


def test_a_fan_in_of_every_degree_is_the_exact_engine_bit_for_bit() -> None:
    graph, batch = hub_graph()
    planner, most = Planner(graph, LAYERS), int(graph.degrees.max())
    exact, thinned = plan_with(planner, batch, None), plan_with(planner, batch, Thinning(most, keys(8)))
    assert_same(exact, thinned)
    encoder, _ = random_model(1, width=8)
    parameters = list(encoder.parameters())
    found, expected = (propagate(encoder, plan).of_candidates() for plan in (thinned, exact))
    assert torch.equal(found, expected)
    for one, other in zip(gradients(found, parameters), gradients(expected, parameters), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("seed", range(6))
def test_the_draw_itself_lists_everything_where_nothing_exceeds_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, batch = hub_graph(seed)
    planner = Planner(graph, LAYERS)
    monkeypatch.setattr(planner, "_most_degree", 10**9)  # or the exact plan would be taken at once
    plan = plan_with(planner, batch, Thinning(10**6, keys(8)))
    check(plan, batch)
    exact = plan_with(planner, batch, None)
    encoder, _ = random_model(seed, width=8)
    assert_exact(propagate(encoder, plan).of_candidates(), propagate(encoder, exact).of_candidates())


@pytest.mark.parametrize("fan_in", [1, 2, 4])
def test_at_most_so_many_edges_of_the_exact_plan_and_only_their_sources(fan_in: int) -> None:
    graph, batch = hub_graph()
    planner = Planner(graph, LAYERS)
    plan, exact = plan_with(planner, batch, Thinning(fan_in, keys(8))), plan_with(planner, batch, None)
    assert plan.rows is not None
    assert exact.rows is not None
    np.testing.assert_array_equal(plan.rows >= 0, exact.rows >= 0)  # who is reached is no matter of luck
    np.testing.assert_array_equal(plan.mean_log_degrees, exact.mean_log_degrees)
    thinned = 0
    for depth in range(1, LAYERS + 1):
        layer, before = plan.layers[depth], plan.layers[depth - 1]
        listed = np.diff(layer.edge_offsets)
        np.testing.assert_array_equal(listed, np.minimum(layer.reached, fan_in))
        thinned += int((layer.reached > fan_in).sum())
        used = np.unique(np.concatenate([layer.sources, layer.previous[layer.previous >= 0]]))
        np.testing.assert_array_equal(used, np.arange(len(before.entities)))
        for query in range(8):
            assert not edges_of(plan, depth, query) - edges_of(exact, depth, query)
    assert thinned > 5
    assert plan.slot_count < exact.slot_count


def test_every_edge_is_drawn_equally_often_and_so_is_every_pair() -> None:
    """Chi-square at .001 of a hub with 12 neighbours, all reached, of which 4 are drawn; 3,000 keys, fixed seed."""
    leaves, drawn, trials = 12, 4, 3000
    spokes = [(0, 0, leaf) for leaf in range(1, leaves + 1)]
    graph = KnowledgeGraph.build([*spokes, *((leaf, 1, 13) for leaf in range(1, leaves + 1))], 14, 2)
    plan = Planner(graph, 2).plan([0] * trials, [0] * trials, [[13]] * trials, None, Thinning(drawn, keys(trials)))
    sources = plan.layers[1].entities[plan.layers[2].sources].reshape(trials, drawn) - 1
    assert all(len(set(row)) == drawn for row in sources.tolist())
    table = np.zeros((leaves, leaves))
    for row in sources:
        table[np.ix_(row, row)] += 1
    share = drawn / leaves
    single = ((np.diag(table) - trials * share) ** 2 / (trials * share * (1 - share))).sum() * (leaves - 1) / leaves
    assert single < 31.3  # 11 degrees of freedom
    pairs = table[np.triu_indices(leaves, 1)]
    chance = share * (drawn - 1) / (leaves - 1)
    assert np.abs(pairs - trials * chance).max() < 4.5 * np.sqrt(trials * chance)


def test_draws_depend_on_key_layer_and_entity_alone() -> None:
    graph, batch = hub_graph()
    planner, chosen = Planner(graph, LAYERS), keys(8)
    whole = plan_with(planner, batch, Thinning(2, chosen))
    assert_same(whole, plan_with(Planner(graph, LAYERS), batch, Thinning(2, chosen)))
    asked = batch.heads, batch.relations, batch.candidates, batch.hidden
    for part in planner.parts(*asked, Budget(total=0.0), Thinning(2, chosen)):
        for depth in range(1, LAYERS + 1):
            assert as_sets(part, depth, 0) == as_sets(whole, depth, part.first)
    other = plan_with(planner, batch, Thinning(2, keys(8, seed=1)))
    assert any(as_sets(other, LAYERS - 1, query) != as_sets(whole, LAYERS - 1, query) for query in range(8))
    repeated = Batch(batch.heads[[3, 3]], batch.relations[[3, 3]], batch.candidates[[3, 3]], _twice(batch, 3))
    twins = plan_with(planner, repeated, Thinning(2, chosen[[3, 5]]))
    assert as_sets(twins, LAYERS, 0) == as_sets(whole, LAYERS, 3)
    assert any(as_sets(twins, depth, 0) != as_sets(twins, depth, 1) for depth in range(1, LAYERS + 1))


def _twice(batch: Batch, query: int) -> HiddenTriples:
    one = batch.hidden.of(query)
    return HiddenTriples(np.array([0, len(one), 2 * len(one)]), np.concatenate([one, one]))


@pytest.mark.parametrize("aggregate", ["pna", "sum", "mean", "max"])
def test_drawn_messages_stand_for_all_and_torch_agrees(aggregate: str) -> None:
    graph, batch = hub_graph(2)
    encoder, _ = random_model(2, aggregate=aggregate, width=8)
    plan = plan_with(Planner(graph, LAYERS), batch, Thinning(2, keys(8)))
    parameters = list(encoder.parameters())
    found, expected = (propagate(encoder, plan, compiled=compiled).of_candidates() for compiled in (True, False))
    assert_exact(found, expected)
    assert_all_close(gradients(found, parameters), gradients(expected, parameters))


def test_the_mean_over_all_draws_is_the_mean_of_all() -> None:
    """Over many keys the average of the drawn means is the exact mean: no factor is missing."""
    graph, count = KnowledgeGraph.build([(0, relation, 1) for relation in range(6)], 2, 6), 4000
    encoder, _ = random_model(5, 6, aggregate="mean", layers=1, layer_norm=False, width=8)
    with torch.no_grad():
        encoder.steps()[0].linear.bias.fill_(50.0)  # far from where ReLU bends: states are linear in the mean
    planner = Planner(graph, 1)
    asked = np.zeros(count, np.int64), np.zeros(count, np.int64), np.ones((count, 1), np.int64)
    drawn = propagate(encoder, planner.plan(*asked, None, Thinning(2, keys(count)))).of_candidates()[:, 0]
    exact = propagate(encoder, planner.plan([0], [0], [[1]])).of_candidates()[0, 0]
    error = drawn.std(0) / count**0.5
    assert (error > 0).any()
    assert ((drawn.mean(0) - exact).abs() <= 4.5 * error + 1e-9).all()


def test_keys_are_one_per_query() -> None:
    graph, batch = hub_graph()
    with pytest.raises(DataError, match="keys; give one per query"):
        plan_with(Planner(graph, LAYERS), batch, Thinning(1, keys(3)))
