from typing import Any

import numpy as np
import pytest

from kgcf.data.graph import KnowledgeGraph
from kgcf.evaluation.bootstrap import bootstrap
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.deletion import check_deletion
from kgcf.explanation.paths import Path
from tests.propagation.random_graphs import random_graph

from .test_case import observe


def as_it_is(path: Path) -> Path:
    return path


def cases(seed: int = 0, **choices: Any) -> list[Case]:
    graph = random_graph(seed, entity_count=12, triple_count=40)
    observed = observe(graph, **choices)
    return [open_case(observed, h, r, t, "triple") for h, r, t in graph.triples.tolist()]


def test_check_removes_the_top_path_a_random_one_of_its_length_and_the_shortest() -> None:
    seen = set()
    for case in cases():
        paths = case.best_paths(3).paths
        if not paths:
            continue
        found = check_deletion(case, paths[0], np.random.default_rng(0), as_it_is)
        assert [deletion.removed for deletion in found] == ["top", "random", "shortest"]
        top, drawn, shortest = found
        assert top.path == paths[0]
        assert len(drawn.path) == len(top.path)
        assert len(shortest.path) == min(len(path) for path in case.best_paths(10_000).paths)
        for deletion in found:
            logits, reached = case.logits_without([np.array(deletion.path.triples)])
            assert deletion.logit == pytest.approx(logits[0], abs=1e-12)
            assert deletion.reached == reached[0]
            assert deletion.drop == max(case.importance.logit - deletion.logit, -np.inf if reached[0] else 1)
        seen.add(drawn.path == top.path)
    assert seen == {True, False}


def test_removing_the_only_path_leaves_no_path() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 1, 2], [0, 1, 2], [3, 0, 4]], 5, 2)
    case = open_case(observe(graph, context="unreached"), 0, 1, 2, "triple")
    (path,) = case.best_paths(5).paths
    for deletion in check_deletion(case, path, np.random.default_rng(0), as_it_is):
        assert deletion.path.triples == (0, 1)
        assert not deletion.reached


def test_interval_covers_the_mean_and_shrinks_with_more_values() -> None:
    rng = np.random.default_rng(0)
    few, many = (bootstrap(rng.normal(1, 1, size), rng) for size in (30, 3000))
    assert few.low < few.value < few.high
    assert many.high - many.low < 0.3 * (few.high - few.low)
    assert many.low == pytest.approx(many.value - 1.96 / np.sqrt(3000), abs=0.01)
    assert many.excludes_zero
    assert not bootstrap(rng.normal(0, 1, 50), rng).excludes_zero
