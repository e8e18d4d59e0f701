"""Batches ask what they should, hide what they must, and fall into parts without loss."""

import numpy as np
import pytest

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import hide_pairs
from kgcf.training.batches import choose_removal, stream, triples_batch
from kgcf.training.passes import epoch_order
from tests.oracles import random_graph


@pytest.mark.parametrize("remove", ["triple", "pair"])
def test_questions_answers_and_hidden_sets(remove: str) -> None:
    graph = random_graph(np.random.default_rng(0))
    triples = np.arange(9)
    batch = triples_batch(graph, triples, 4, "pair" if remove == "pair" else "triple", stream(0, 0, 0))
    assert batch.asked.turned.tolist() == [False] * 5 + [True] * 4
    for b, e in enumerate(batch.asked.triples[:, 0].tolist()):
        h, r, t = graph.triples[e].tolist()
        asked = (h, r, t) if not batch.asked.turned[b] else (t, r + 3, h)
        assert (batch.heads[b], batch.relations[b], batch.candidates[b, 0]) == asked
        known = set(graph.tails(asked[0], asked[1]).tolist())
        assert not known & set(batch.candidates[b, 1:].tolist())
        if remove == "triple":
            assert batch.hidden.of(b).tolist() == [e]
        else:
            assert (
                batch.hidden.of(b).tolist() == hide_pairs(graph, [asked[0]], batch.candidates[b : b + 1]).of(0).tolist()
            )


def test_parts_join_to_the_whole() -> None:
    graph = random_graph(np.random.default_rng(1))
    batch = triples_batch(graph, np.arange(10), 3, "pair", stream(1, 2, 3))
    parts = [batch.part(i, 3) for i in range(3)]
    assert sorted(np.concatenate([p.asked.triples[:, 0] for p in parts]).tolist()) == sorted(
        batch.asked.triples[:, 0].tolist()
    )
    for i, part in enumerate(parts):
        for j in range(len(part)):
            assert part.hidden.of(j).tolist() == batch.hidden.of(i + 3 * j).tolist()
            assert part.candidates[j].tolist() == batch.candidates[i + 3 * j].tolist()


def test_streams_depend_on_their_place_alone() -> None:
    assert (epoch_order(50, 7, 1) == epoch_order(50, 7, 1)).all()
    assert (epoch_order(50, 7, 1) != epoch_order(50, 7, 2)).any()
    draws = {
        tuple(stream(*place).integers(0, 1 << 30, 3)) for place in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0)]
    }
    assert len(draws) == 5


def test_auto_removal_looks_at_validation_pairs() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 2], [2, 0, 3]], 4, 1)
    assert choose_removal(graph, np.array([[1, 0, 0]], dtype=np.int32)) == "triple"
    assert choose_removal(graph, np.array([[0, 0, 3], [3, 0, 1]], dtype=np.int32)) == "pair"
    assert choose_removal(graph, np.zeros((0, 3), dtype=np.int32)) == "triple"
