"""The adjacency against the triples it was built from."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from kgcf.data import graph as graph_module
from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import DataError, StorageError
from tests.oracles import edge_set, graphs, random_graph


@given(graphs())
def test_adjacency_lists_every_edge_once(graph: KnowledgeGraph) -> None:
    heads = np.repeat(np.arange(graph.entity_count), graph.degrees)
    rows = list(zip(heads.tolist(), graph.edge_relations.tolist(), graph.edge_tails.tolist(), strict=True))
    assert rows == sorted(edge_set(graph))
    for (h, r, t), source in zip(rows, graph.edge_triples.tolist(), strict=True):
        head, relation, tail = graph.triples[source % len(graph)].tolist()
        expected = (head, relation, tail) if source < len(graph) else (tail, relation + graph.relation_count, head)
        assert (h, r, t) == expected


@given(graphs())
def test_lookup_equals_the_edge_set(graph: KnowledgeGraph) -> None:
    edges = edge_set(graph)
    n, r = graph.entity_count, 2 * graph.relation_count
    every = np.array([(h, k, t) for h in range(n) for k in range(r) for t in range(n)])
    found = graph.find_edges(every[:, 0], every[:, 1], every[:, 2])
    assert [tuple(row) in edges for row in every.tolist()] == (found >= 0).tolist()
    assert (graph.edge_tails[found[found >= 0]] == every[found >= 0, 2]).all()
    for h in range(n):
        for k in range(r):
            assert graph.tails(h, k).tolist() == sorted(t for (a, b, t) in edges if (a, b) == (h, k))


@given(graphs())
def test_relations_with_self_loops_are_known(graph: KnowledgeGraph) -> None:
    looped = {r for h, r, t in graph.triples.tolist() if h == t}
    assert [*np.flatnonzero(graph.has_self_loops)] == sorted(looped)


def test_repeats_keep_the_first_weight() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 0], [0, 0, 1]], 2, 1, [0.5, 2.0, 9.0])
    assert graph.triples.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert graph.edge_weights[graph.find_edges([0, 1], [0, 1], [1, 0])].tolist() == [0.5, 0.5]
    assert graph.edge_weights[graph.find_edges([1, 0], [0, 1], [0, 1])].tolist() == [2.0, 2.0]


def test_order_is_the_same_when_the_combined_key_would_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = random_graph(np.random.default_rng(0))
    monkeypatch.setattr(graph_module, "_overflows", lambda *_: True)
    slow = KnowledgeGraph.build(plain.triples, plain.entity_count, plain.relation_count)
    assert (slow.edge_tails == plain.edge_tails).all()
    assert (slow.edge_triples == plain.edge_triples).all()
    repeated = KnowledgeGraph.build([[0, 0, 1], [1, 0, 0], [0, 0, 1]], 2, 1)
    assert repeated.triples.tolist() == [[0, 0, 1], [1, 0, 0]]


@given(graphs())
def test_without_is_rebuilding_from_the_rest(graph: KnowledgeGraph) -> None:
    removed = graph.triples[::2]
    rest = graph.without(removed)
    assert edge_set(rest) == edge_set(
        KnowledgeGraph.build(graph.triples[1::2], graph.entity_count, graph.relation_count)
    )


def test_inverse_is_its_own_inverse() -> None:
    graph = random_graph(np.random.default_rng(1))
    ids = np.arange(6)
    assert graph.inverse(ids).tolist() == [3, 4, 5, 0, 1, 2]
    assert (graph.inverse(graph.inverse(ids)) == ids).all()


def test_a_saved_graph_is_mapped_back_unchanged(tmp_path: Path) -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 1, 2]], 4, 2, [0.5, 1.5])
    graph.save(tmp_path / "graph.safetensors")
    opened = KnowledgeGraph.open(tmp_path / "graph.safetensors")
    assert opened.fingerprint == graph.fingerprint
    assert (opened.edge_tails == graph.edge_tails).all()
    assert opened.tails(1, 1).tolist() == [2]
    assert isinstance(opened.edge_tails.base, np.memmap) or isinstance(opened.edge_tails.base.base, np.memmap)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="read-only"):
        opened.edge_tails[0] = 0


def test_a_truncated_graph_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.safetensors"
    random_graph(np.random.default_rng(2)).save(path)
    whole = path.read_bytes()
    for length in (3, 20, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(StorageError, match="truncated"):
            KnowledgeGraph.open(path)


def test_graphs_are_immutable() -> None:
    graph = random_graph(np.random.default_rng(3))
    with pytest.raises(ValueError, match="read-only"):
        graph.triples[0, 0] = 5


@pytest.mark.parametrize(
    ("triples", "weights", "message"),
    [
        ([[0, 0, 5]], None, "outside the graph"),
        ([[0, -1, 1]], None, "outside the graph"),
        ([[0, 0, 1]], [1.0, 2.0], "1 triples but 2 weights"),
        ([[0, 0, 1]], [float("nan")], "not a finite number"),
    ],
)
def test_impossible_triples_are_refused(triples: list[list[int]], weights: list[float] | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        KnowledgeGraph.build(triples, 2, 1, weights)


def test_fingerprint_tells_graphs_apart() -> None:
    base = KnowledgeGraph.build([[0, 0, 1]], 2, 1)
    others = [
        KnowledgeGraph.build([[1, 0, 0]], 2, 1),
        KnowledgeGraph.build([[0, 0, 1]], 3, 1),
        KnowledgeGraph.build([[0, 0, 1]], 2, 1, [1.0]),
    ]
    assert len({g.fingerprint for g in [base, *others]}) == 4
