"""Matching at real scale equals a plain scan over every candidate pair."""

from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from kgcf.causal.counterfactual import match_pairs, treatment_shares
from kgcf.causal.embedding import EntitySpace
from kgcf.causal.treatment import Treatment, assign_treatment
from kgcf.data import registry
from kgcf.data.graph import KnowledgeGraph

from .oracles import space_of

pytestmark = pytest.mark.benchmark


def all_pairs(graph: KnowledgeGraph) -> NDArray[np.int64]:
    active = np.flatnonzero(graph.degrees)
    return np.stack(np.meshgrid(active, active, indexing="ij"), axis=-1).reshape(-1, 2)


def check_by_scan(
    graph: KnowledgeGraph,
    space: EntitySpace,
    treatment: Treatment,
    candidates: Literal["all", "observed"],
    queries: NDArray[np.int32],
) -> None:
    """Every candidate pair of every query in one row; pairs are in ascending order, so argmin takes the lowest."""
    pairs = all_pairs(graph) if candidates == "all" else np.unique(graph.triples[:, [0, 2]], axis=0).astype(np.int64)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    table = match_pairs(queries, graph, space, treatment, candidates, threads=1)
    vectors = space.vectors.astype(np.float64)
    for i, (h, r, t) in enumerate(queries.tolist()):
        asked = np.insert(pairs, 1, r, axis=1)
        treated = treatment.treated_triples(asked, leave_one_out=candidates == "observed")
        allowed = (treated != table.factual_treatments[i]) & (pairs[:, 0] != h) & (pairs[:, 1] != t)
        left = pairs[allowed]
        if not len(left):
            assert not table.matched[i]
            continue
        sums = np.sqrt(((vectors[left[:, 0]] - vectors[h]) ** 2).sum(axis=1)) + np.sqrt(
            ((vectors[left[:, 1]] - vectors[t]) ** 2).sum(axis=1)
        )
        best = int(sums.argmin())
        assert tuple(table.substitutes[i]) == tuple(left[best])
        assert table.distances[i] == pytest.approx(sums[best], rel=1e-12)
        assert table.counterfactual_outcomes[i] == graph.contains([[left[best, 0], r, left[best, 1]]])[0]


@pytest.mark.parametrize(("name", "candidates", "count"), [("umls", "all", 40), ("wn18rr", "observed", 25)])
def test_equals_a_scan(name: str, candidates: Literal["all", "observed"], count: int) -> None:
    graph = registry.load(name).graph
    rng = np.random.default_rng(0)
    space = space_of(rng.normal(size=(graph.entity_count, 6)))
    queries = graph.triples[rng.choice(len(graph), count, replace=False)]
    check_by_scan(graph, space, assign_treatment(graph, threads=1), candidates, queries)


def test_shares_show_the_leak_of_wn18rr() -> None:
    data = registry.load("wn18rr")
    shares = treatment_shares(data, assign_treatment(data.graph, threads=1))
    assert shares.train == pytest.approx(0.763, abs=0.005)
    assert shares.train_left_out == pytest.approx(0.399, abs=0.01)
    assert shares.train_negatives_left_out == pytest.approx(0.170, abs=0.01)
    assert shares.valid == pytest.approx(0.4, abs=0.015)
