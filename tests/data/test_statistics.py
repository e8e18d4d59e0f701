"""Facts about datasets, against counting by hand on awkward graphs and against published numbers."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given

from kgcf.data import registry
from kgcf.data.dataset import Split, transductive
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hops import count_within, distances
from kgcf.data.statistics import (
    describe,
    describe_graph,
    describe_queries,
    distinct_names,
    relation_categories,
    relation_fans,
    symmetric_triples,
)
from kgcf.data.vocabulary import Vocabulary
from tests.oracles import graphs, random_graph


def neighbours(graph: KnowledgeGraph) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for h, _, t in graph.triples.tolist():
        found[h].add(t)
        found[t].add(h)
    return found


def within(graph: KnowledgeGraph, start: int, hops: int) -> list[set[int]]:
    """Entities within 0, 1, … hops, by taking unions."""
    near = neighbours(graph)
    reached = [{start}]
    for _ in range(hops):
        reached.append(reached[-1].union(*(near[v] for v in reached[-1])))
    return reached


@given(graphs())
def test_reach_equals_taking_unions(graph: KnowledgeGraph) -> None:
    entities = np.arange(graph.entity_count)
    counts = count_within(graph, entities, 4)
    pairs = np.array([(a, b) for a in entities for b in entities])
    apart = distances(graph, pairs, 3).reshape(graph.entity_count, -1)
    for start in range(graph.entity_count):
        reached = within(graph, start, 4)
        assert counts[start].tolist() == [len(found) for found in reached[1:]]
        for end in range(graph.entity_count):
            assert apart[start, end] == next((k for k in range(4) if end in reached[k]), 4)


def test_distances_on_larger_graphs() -> None:
    for seed in range(5):
        generator = np.random.default_rng(seed)
        graph = random_graph(generator, entities=200, relations=2, triples=230, isolated=20)
        pairs = generator.integers(0, 200, (150, 2))
        expected = []
        for start, end in pairs.tolist():
            reached = within(graph, start, 6)
            expected.append(next((k for k in range(7) if end in reached[k]), 7))
        assert distances(graph, pairs, 6).tolist() == expected
        assert len(set(expected)) > 5


@given(graphs())
def test_categories_equal_counting_by_hand(graph: KnowledgeGraph) -> None:
    expected = []
    for relation in range(graph.relation_count):
        tails, heads = defaultdict(set), defaultdict(set)
        for h, r, t in graph.triples.tolist():
            if r == relation:
                tails[h].add(t)
                heads[t].add(h)
        per_head = np.mean([len(found) for found in tails.values()]) if tails else 0.0
        per_tail = np.mean([len(found) for found in heads.values()]) if heads else 0.0
        found = relation_fans(graph)
        assert found[0][relation] == pytest.approx(per_head)
        assert found[1][relation] == pytest.approx(per_tail)
        expected.append(("N" if per_tail >= 1.5 else "1") + "-" + ("N" if per_head >= 1.5 else "1"))
    assert relation_categories(graph) == expected


def test_categories_by_name() -> None:
    rows = [(0, 0, 1), (2, 0, 3)]  # 1-1
    rows += [(0, 1, 1), (0, 1, 2), (0, 1, 3)]  # 1-N: one head, many tails
    rows += [(1, 2, 0), (2, 2, 0), (3, 2, 0)]  # N-1
    rows += [(a, 3, b) for a in (0, 1) for b in (2, 3)]  # N-N
    assert relation_categories(KnowledgeGraph.build(rows, 4, 5)) == ["1-1", "1-N", "N-1", "N-N", "1-1"]


@given(graphs())
def test_graph_facts_equal_counting_by_hand(graph: KnowledgeGraph) -> None:
    facts = set(map(tuple, graph.triples.tolist()))
    found = describe_graph(graph, "g", np.random.default_rng(0))
    linked = {e for h, _, t in facts for e in (h, t)}
    proper = [f for f in facts if f[0] != f[2]]
    mutual = [f for f in proper if (f[2], f[1], f[0]) in facts]
    components = {frozenset(within(graph, e, graph.entity_count)[-1]) for e in linked}
    assert (found.triples, found.connected_entities) == (len(facts), len(linked))
    assert found.self_loops == len(facts) - len(proper)
    assert found.symmetric_share == pytest.approx(len(mutual) / max(len(proper), 1))
    assert int(symmetric_triples(graph).sum()) == len(mutual)
    assert found.components == len(components)
    assert found.largest_component == max((len(c) for c in components), default=0)
    assert found.relations == len({r for _, r, _ in facts})
    if linked:
        degrees = [sum((h == e) + (t == e) for h, _, t in facts) for e in linked]
        assert found.degree_mean == pytest.approx(np.mean(degrees))
        assert found.degree_max == max(degrees)
        assert found.within_hops[0] == pytest.approx(np.mean([len(within(graph, e, 1)[1]) for e in linked]))
        assert found.starts == len(linked)


@given(graphs(), graphs())
def test_query_facts_equal_counting_by_hand(graph: KnowledgeGraph, other: KnowledgeGraph) -> None:
    size = max(graph.entity_count, other.entity_count), max(graph.relation_count, other.relation_count, 2)
    observed = KnowledgeGraph.build(graph.triples, *size)
    facts = set(map(tuple, graph.triples.tolist()))
    rows = other.triples.tolist() + other.triples.tolist()[:1]
    queries = np.array(rows, dtype=np.int32).reshape(-1, 3)
    split = Split("test", observed, queries, observed, Vocabulary.numbered(size[0]))
    found = describe_queries(split, [(0, 1, True)], np.random.default_rng(0))
    linked = {e for h, _, t in facts for e in (h, t)}
    swap = {0: 1, 1: 0}
    reverse = [(t, r, h) in facts for h, r, t in rows]
    mirror = [r in swap and (t, swap[r], h) in facts for h, r, t in rows]
    pairs = {frozenset((h, t)) for h, _, t in facts}
    assert found.triples == len(rows)
    assert found.repeated == (1 if rows else 0)
    assert found.in_observed == sum(tuple(row) in facts for row in rows)
    assert found.unseen_entity == sum(not {h, t} <= linked for h, _, t in rows)
    assert found.unseen_relation == sum(r not in {f[1] for f in facts} for _, r, _ in rows)
    assert found.self_loops == sum(h == t for h, _, t in rows)
    assert (found.reverse_observed, found.mirror_observed) == (sum(reverse), sum(mirror))
    assert found.leaked == sum(a or b for a, b in zip(reverse, mirror, strict=True))
    assert found.linked == sum(frozenset((h, t)) in pairs for h, _, t in rows)
    if rows:
        near = [t in within(observed, h, 2)[2] for h, _, t in rows]
        assert found.within_hops[1] == pytest.approx(np.mean(near))


def test_duplicate_relations_leak_in_the_same_direction() -> None:
    observed = KnowledgeGraph.build([(0, 0, 1)], 3, 2)
    queries = np.array([(0, 1, 1), (1, 1, 0)], dtype=np.int32)
    split = Split("test", observed, queries, observed, Vocabulary.numbered(3))
    found = describe_queries(split, [(0, 1, False)], np.random.default_rng(0))
    assert (found.mirror_observed, found.reverse_observed, found.leaked, found.linked) == (1, 0, 1, 2)


def test_an_inverse_pair_is_found_and_its_leak_counted() -> None:
    pairs = [(i, i + 20) for i in range(20)]
    train = [(a, 0, b) for a, b in pairs] + [(b, 1, a) for a, b in pairs[:18]]
    test = [(b, 1, a) for a, b in pairs[18:]]
    data = transductive(
        "d",
        Vocabulary.numbered(40),
        Vocabulary(["has part", "part of"]),
        (np.array(train, np.int32), np.zeros((0, 3), np.int32), np.array(test, np.int32)),
    )
    facts = describe(data, np.random.default_rng(0))
    assert [(m.kind, m.first, m.second, m.share) for m in facts.mirrors] == [("inverse", "has part", "part of", 1.0)]
    assert facts.queries[1].leaked == facts.queries[1].mirror_observed == 2
    assert facts.queries[0].triples == 0
    assert [r.category for r in facts.per_relation] == ["1-1", "1-1"]
    plain = facts.to_json()
    assert plain["test"] == 2
    assert isinstance(plain["queries"], tuple | list)


def test_an_empty_graph_has_facts_too() -> None:
    nothing = np.zeros((0, 3), np.int32)
    data = transductive("d", Vocabulary.numbered(3), Vocabulary.numbered(2), (nothing, nothing, nothing))
    facts = describe(data, np.random.default_rng(0))
    assert facts.graphs[0].components == 0
    assert facts.graphs[0].within_hops == (0.0,) * 6
    assert facts.queries[1].within_hops == (0.0,) * 6


def test_ambiguous_names_are_replaced_by_labels() -> None:
    vocabulary = Vocabulary(["a", "b", "c", "d"], {"a": "same", "b": "same", "c": "other"})
    assert distinct_names(vocabulary) == ["a", "b", "other", "d"]


@pytest.mark.benchmark
def test_wn18rr_as_published() -> None:
    facts = describe(registry.load("wn18rr"), np.random.default_rng(0))
    graph, (valid, test) = facts.graphs[0], facts.queries
    assert (facts.entities, facts.relations) == (40_943, 11)
    assert (facts.train, facts.valid, facts.test) == (86_835, 3_034, 3_134)
    assert graph.connected_entities == 40_559
    assert (test.unseen_entity, valid.unseen_entity) == (210, 210)
    assert (test.reverse_observed, test.leaked) == (1_086, 1_086)
    assert graph.degree_mean == pytest.approx(4.28, abs=0.005)
    assert (graph.degree_median, graph.degree_99, graph.degree_max) == (3, 23, 482)
    assert graph.within_hops[3] == pytest.approx(1_092, rel=0.25)
    assert test.pairs == 3_134
    assert test.within_hops[5] == pytest.approx(0.865, abs=0.001)
    kinds = {relation.name: relation.category for relation in facts.per_relation}
    assert kinds["_hypernym"] == "N-1"
    assert kinds["_derivationally_related_form"] == "N-N"


@pytest.mark.benchmark
def test_fb15k_237_as_published() -> None:
    facts = describe(registry.load("fb15k-237"), np.random.default_rng(0))
    graph, (valid, test) = facts.graphs[0], facts.queries
    assert (valid.unseen_entity, test.unseen_entity) == (9, 28)
    assert (graph.self_loops, valid.self_loops, test.self_loops) == (1_625, 90, 91)
    assert (valid.linked, test.linked, test.leaked) == (0, 0, 0)
    assert graph.degree_mean == pytest.approx(37.5, abs=0.05)
    assert (graph.degree_median, graph.degree_max) == (22, 7_614)
    assert test.within_hops[5] > 0.99


@pytest.mark.benchmark
def test_an_inductive_pair_has_two_graphs() -> None:
    facts = describe(registry.load("wn18rr:v1"), np.random.default_rng(0))
    assert [graph.title for graph in facts.graphs] == ["train graph", "test graph"]
    assert [graph.entities for graph in facts.graphs] == [2_746, 922]
    assert facts.queries[1].within_hops[5] == pytest.approx(0.883, abs=0.001)
