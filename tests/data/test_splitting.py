"""The split keeps its promises: quotas, entities in train, mirrors together, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.mirrors import find_mirrors, mirror_groups
from kgcf.data.splitting import TEST, TRAIN, VALID, SplitSettings, split_triples
from kgcf.errors import SettingsError
from tests.oracles import graphs


def world_like(generator: np.random.Generator) -> KnowledgeGraph:
    """A symmetric relation 0, an inverse pair 1 and 2, a plain relation 3, a near-copy 4 of relation 3."""
    pairs = np.unique(generator.integers(0, 60, (400, 2)), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]

    def rows(ends: np.ndarray[tuple[int, ...], np.dtype[np.int64]], relation: int) -> list[list[int]]:
        return [[int(h), relation, int(t)] for h, t in ends]

    symmetric = rows(pairs[:80], 0) + rows(pairs[:80, ::-1], 0)
    inverse = rows(pairs[80:160], 1) + rows(pairs[80:160, ::-1], 2)
    plain = rows(pairs[160:240], 3) + rows(pairs[160:238], 4)
    return KnowledgeGraph.build(symmetric + inverse + plain, 60, 5)


def test_mirrors_are_found() -> None:
    found = {(m.kind, m.first, m.second): m for m in find_mirrors(world_like(np.random.default_rng(0)))}
    assert set(found) == {("symmetric", 0, 0), ("inverse", 1, 2), ("duplicate", 3, 4)}
    assert found["symmetric", 0, 0].share == 1.0
    assert found["inverse", 1, 2].count == 80


@given(graphs(max_entities=5, max_relations=3, max_triples=30))
def test_mirrors_equal_counting_by_hand(graph: KnowledgeGraph) -> None:
    facts = set(map(tuple, graph.triples.tolist()))
    counts = np.bincount(graph.triples[:, 1], minlength=graph.relation_count)
    expected = set()
    for a in range(graph.relation_count):
        for b in range(a, graph.relation_count):
            turned = sum(h != t and (t, b, h) in facts for h, r, t in facts if r == a)
            same = sum(h != t and a != b and (h, b, t) in facts for h, r, t in facts if r == a)
            for kind, count in (("symmetric" if a == b else "inverse", turned), ("duplicate", same)):
                if count and (a == b or count / min(counts[a], counts[b]) >= 0.8):
                    expected.add((kind, a, b, count))
    assert {(m.kind, m.first, m.second, m.count) for m in find_mirrors(graph)} == expected


def test_mirrored_facts_travel_together() -> None:
    graph = world_like(np.random.default_rng(1))
    result = split_triples(graph, SplitSettings(seed=3))
    side = {tuple(row): part for row, part in zip(graph.triples.tolist(), result.assignment.tolist(), strict=True)}
    mirror = {0: (0, True), 1: (2, True), 3: (4, False)}
    for (h, r, t), part in side.items():
        if r in mirror:
            other, turned = mirror[r]
            twin = (t, other, h) if turned else (h, other, t)
            assert side.get(twin, part) == part
    leaky = split_triples(graph, SplitSettings(seed=3, allow_inverse_leak=True))
    side = {tuple(row): part for row, part in zip(graph.triples.tolist(), leaky.assignment.tolist(), strict=True)}
    assert any(side[h, r, t] != side[t, 0, h] for (h, r, t) in side if r == 0)


@given(graphs(max_entities=8, max_triples=40), st.integers(0, 5))
def test_entities_and_relations_stay_in_train(graph: KnowledgeGraph, seed: int) -> None:
    result = split_triples(graph, SplitSettings(valid=0.3, test=0.3, seed=seed))
    train = graph.triples[result.rows(TRAIN)]
    assert set(train[:, [0, 2]].ravel()) == set(graph.triples[:, [0, 2]].ravel())
    assert set(train[:, 1]) == set(graph.triples[:, 1])
    counts = np.bincount(graph.triples[:, 1], minlength=graph.relation_count)
    for part in (VALID, TEST):
        taken = np.bincount(graph.triples[result.rows(part), 1], minlength=graph.relation_count)
        assert (taken <= counts * 0.3 + 1).all()


def test_shares_are_met_and_stratified_where_nothing_hinders() -> None:
    generator = np.random.default_rng(0)
    rows = np.stack(
        [generator.integers(0, 50, 6000), generator.integers(0, 3, 6000), generator.integers(50, 100, 6000)], 1
    )
    graph = KnowledgeGraph.build(rows, 100, 3)
    result = split_triples(graph, SplitSettings(valid=0.1, test=0.2))
    for relation in range(3):
        parts = result.assignment[graph.triples[:, 1] == relation]
        assert abs((parts == VALID).mean() - 0.1) < 0.01
        assert abs((parts == TEST).mean() - 0.2) < 0.01


def test_the_seed_decides() -> None:
    graph = world_like(np.random.default_rng(0))
    first, again, other = (split_triples(graph, SplitSettings(seed=s)).assignment for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_groups_join_chains_of_mirrors() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 0], [1, 1, 0], [2, 0, 3]], 4, 2)
    groups = mirror_groups(graph, find_mirrors(graph))
    assert groups[0] == groups[1] == groups[2] != groups[3]


def test_impossible_shares_are_refused() -> None:
    with pytest.raises(SettingsError, match="less than 1"):
        SplitSettings(valid=0.5, test=0.5)
