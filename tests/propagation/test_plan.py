"""The plan against plain breadth-first search and set comprehensions."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import hide_nothing
from kgcf.errors import DataError, SettingsError
from kgcf.propagation.plan.planner import Budget, LayerPlan, Plan, Planner

from .batches import Batch, random_batch
from .random_graphs import random_graph

Edge = tuple[int, int, int]


def visible_edges(graph: KnowledgeGraph, batch: Batch, query: int) -> list[Edge]:
    """(source, relation, target) of both directions of every triple the query may see."""
    hidden = set(batch.hidden.of(query).tolist())
    edges = []
    for index, (head, relation, tail) in enumerate(graph.triples.tolist()):
        if index not in hidden:
            edges += [(head, relation, tail), (tail, relation + graph.relation_count, head)]
    return edges


def distances(edges: list[Edge], starts: set[int], depth: int) -> dict[int, int]:
    found = dict.fromkeys(starts, 0)
    for hops in range(1, depth + 1):
        for source, _, target in edges:
            if found.get(source, depth + 1) == hops - 1 and target not in found:
                found[target] = hops
    return found


def layer_slots(edges: list[Edge], head: int, candidates: set[int], layers: int) -> list[set[int]]:
    ahead, behind = distances(edges, {head}, layers), distances(edges, candidates, layers)
    return [
        {v for v in ahead if ahead[v] <= layer and behind.get(v, layers + 1) <= layers - layer}
        for layer in range(layers + 1)
    ]


def slots_of(layer: LayerPlan, query: int) -> list[int]:
    return list(map(int, layer.entities[layer.slot_offsets[query] : layer.slot_offsets[query + 1]]))


def edges_of(plan: Plan, depth: int, query: int) -> Counter[Edge]:
    layer, before = plan.layers[depth], plan.layers[depth - 1]
    found: Counter[Edge] = Counter()
    for slot in range(layer.slot_offsets[query], layer.slot_offsets[query + 1]):
        for edge in range(layer.edge_offsets[slot], layer.edge_offsets[slot + 1]):
            source = before.entities[layer.sources[edge]]
            assert before.queries[layer.sources[edge]] == query
            found[int(source), int(layer.relations[edge]), int(layer.entities[slot])] += 1
    return found


def check_query(plan: Plan, batch: Batch, query: int) -> None:
    graph, layers = plan.graph, len(plan.layers) - 1
    edges = visible_edges(graph, batch, query)
    head = int(batch.heads[query])
    candidates = set(range(graph.entity_count)) if plan.candidates is None else set(batch.candidates[query].tolist())
    expected = layer_slots(edges, head, candidates, layers)
    degrees = Counter(target for _, _, target in edges)
    mean = sum(math.log(degrees[v] + 1) for v in range(graph.entity_count)) / graph.entity_count
    assert plan.mean_log_degrees[query] == pytest.approx(mean, abs=1e-12)
    for depth, layer in enumerate(plan.layers):
        members = slots_of(layer, query)
        assert len(members) == len(set(members))
        assert set(members) == expected[depth]
        for slot, entity in enumerate(members, start=int(layer.slot_offsets[query])):
            assert layer.degrees[slot] == degrees[entity]
            scale = math.log(degrees[entity] + 1) / mean if mean > 0 else 0.0
            assert layer.scales[slot] == pytest.approx(scale, abs=1e-12)
            if depth and entity in expected[depth - 1]:
                assert plan.layers[depth - 1].entities[layer.previous[slot]] == entity
                assert plan.layers[depth - 1].queries[layer.previous[slot]] == query
            else:
                assert layer.previous[slot] == -1
        assert (layer.heads[query] >= 0) == (head in expected[depth])
        if head in expected[depth]:
            assert layer.entities[layer.heads[query]] == head
        if depth:
            wanted = Counter(e for e in edges if e[0] in expected[depth - 1] and e[2] in expected[depth])
            assert edges_of(plan, depth, query) == wanted


def check(plan: Plan, batch: Batch) -> None:
    for query in range(len(plan)):
        check_query(plan, batch, query)
    if plan.rows is not None:
        last = plan.layers[-1]
        for query, k in np.ndindex(*plan.rows.shape):
            row, entity = plan.rows[query, k], batch.candidates[query, k]
            assert (row >= 0) == (entity in slots_of(last, query))
            assert row < 0 or (last.entities[row] == entity and last.queries[row] == query)


def assert_same(one: Plan, other: Plan) -> None:
    for layer, twin in zip(one.layers, other.layers, strict=True):
        for name, value in vars(layer).items():
            np.testing.assert_array_equal(value, getattr(twin, name))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    remove=st.sampled_from(["triple", "pair", "nothing"]),
    layers=st.integers(1, 5),
    triples=st.integers(1, 30),
)
def test_slots_and_edges_equal_those_of_plain_search(seed: int, remove: str, layers: int, triples: int) -> None:
    graph = random_graph(seed, entity_count=10, triple_count=triples)
    batch = random_batch(seed, graph, remove=remove)
    check(Planner(graph, layers).plan(batch.heads, batch.relations, batch.candidates, batch.hidden), batch)
    check(Planner(graph, layers).plan(batch.heads, batch.relations, None, batch.hidden), batch)


@pytest.mark.parametrize("meeting", range(5))
def test_any_meeting_depth_gives_the_same_slots(meeting: int) -> None:
    graph = random_graph(3, entity_count=30, triple_count=40)
    batch = random_batch(3, graph, size=12, remove="pair")
    plan = Planner(graph, 4, meeting).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    assert (plan.meetings == meeting).all()
    check(plan, batch)


def test_the_cheaper_cone_grows() -> None:
    leaves = [(0, 0, leaf) for leaf in range(1, 50)]
    graph = KnowledgeGraph.build([*leaves, (50, 0, 51), (51, 0, 52), (52, 0, 1)], 53, 1)
    meet_at_candidate = Planner(graph, 4).plan([50], [0], [[0]])  # the hub is a candidate: come from the other side
    meet_at_head = Planner(graph, 4).plan([0], [0], [[50]])
    assert meet_at_candidate.meetings[0] > meet_at_head.meetings[0]


def test_buffers_are_clean_after_every_batch() -> None:
    graph = random_graph(5, entity_count=40, triple_count=60)
    planner = Planner(graph, 3)
    batches = [random_batch(seed, graph, size=7, remove="pair") for seed in range(6)]
    for batch in [*batches, *batches]:
        fresh = Planner(graph, 3).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
        assert_same(planner.plan(batch.heads, batch.relations, batch.candidates, batch.hidden), fresh)


def test_a_plan_survives_the_next_one() -> None:
    graph = random_graph(6, entity_count=20, triple_count=30)
    planner = Planner(graph, 3)
    batch, other = random_batch(1, graph), random_batch(2, graph)
    plan = planner.plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    planner.plan(other.heads, other.relations, other.candidates, other.hidden)
    check(plan, batch)


@pytest.mark.parametrize("total", [0.0, 8_000.0, 20_000.0, math.inf])
def test_parts_fit_the_budget_and_cover_the_batch(total: float) -> None:
    graph = random_graph(7, entity_count=40, triple_count=90)
    batch = random_batch(7, graph, size=9, remove="pair")
    budget = Budget(total=total, width=8)
    parts = list(Planner(graph, 3).parts(batch.heads, batch.relations, batch.candidates, batch.hidden, budget))
    assert [part.first for part in parts] == np.cumsum([0, *(len(part) for part in parts[:-1])]).tolist()
    assert sum(len(part) for part in parts) == 9
    for part in parts:
        check(part, batch.take(slice(part.first, part.first + len(part))))
        slots = sum(len(layer.entities) for layer in part.layers)
        cost = slots * budget.limits.slot_bytes + part.edge_count * budget.limits.edge_bytes
        assert len(part) == 1 or cost <= total
    assert len(parts) == {0.0: 9, math.inf: 1}.get(total, len(parts))
    assert total in (0.0, math.inf) or 1 < len(parts) < 9


def test_an_empty_batch_and_an_empty_graph() -> None:
    graph = KnowledgeGraph.build(np.zeros((0, 3)), 4, 1)
    plan = Planner(graph, 2).plan([1, 2], [0, 1], [[1, 0], [3, 3]])
    check(plan, Batch(np.array([1, 2]), np.array([0, 1]), np.array([[1, 0], [3, 3]]), hide_nothing(2)))
    assert plan.rows is not None
    assert (plan.rows >= 0).tolist() == [[True, False], [False, False]]
    assert len(Planner(graph, 2).plan([], [], np.zeros((0, 3)))) == 0


def test_impossible_requests_are_refused() -> None:
    graph = random_graph(0)
    with pytest.raises(SettingsError, match="layers = 0"):
        Planner(graph, 0)
    with pytest.raises(SettingsError, match="meeting = 4"):
        Planner(graph, 3, meeting=4)
    with pytest.raises(DataError, match="candidate id"):
        Planner(graph, 3).plan([0], [0], [[graph.entity_count]])
    with pytest.raises(DataError, match="relation id"):
        Planner(graph, 3).plan([0], [2 * graph.relation_count], [[0]])
    with pytest.raises(DataError, match="one of each per query"):
        Planner(graph, 3).plan([0, 1], [0], [[0], [0]])
