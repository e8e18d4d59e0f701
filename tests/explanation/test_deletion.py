from typing import Any

import numpy as np
import pytest

from kgcf.data.graph import KnowledgeGraph
from kgcf.evaluation.bootstrap import bootstrap
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.deletion import DeletionCurve, Removed, check_deletion, trace_deletions
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
            assert deletion.drop == case.importance.logit - deletion.logit
        seen.add(drawn.path == top.path)
    assert seen == {True, False}


def test_removing_the_only_path_leaves_no_path() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 1, 2], [0, 1, 2], [3, 0, 4]], 5, 2)
    case = open_case(observe(graph, context="unreached"), 0, 1, 2, "triple")
    (path,) = case.best_paths(5).paths
    for deletion in check_deletion(case, path, np.random.default_rng(0), as_it_is):
        assert deletion.path.triples == (0, 1)
        assert not deletion.reached


def test_curve_equals_removing_path_sets_one_by_one() -> None:
    asked = cases(1)
    curve = trace_deletions(asked, np.random.default_rng(0), counts=(1, 3))
    paths = [case.best_paths(3).paths for case in asked]
    assert len(curve) + curve.without_path + curve.without_random == len(asked)
    assert curve.without_path == sum(not found for found in paths)
    assert curve.without_random == 0
    row = 0
    for case, found in zip(asked, paths, strict=True):
        if not found:
            continue
        for column, count in enumerate((1, 3)):
            removed = np.unique([triple for path in found[:count] for triple in path.triples])
            logits, reached = case.logits_without([removed])
            assert curve.drops["top"][row, column] == pytest.approx(case.importance.logit - logits[0], abs=1e-12)
            assert curve.cut["top"][row, column] == (not reached[0])
            assert curve.removed[row, column] == len(removed)
        row += 1
    assert 0 < curve.same < len(curve)


def test_interval_covers_the_mean_and_shrinks_with_more_values() -> None:
    rng = np.random.default_rng(0)
    few, many = (bootstrap(rng.normal(1, 1, size), rng) for size in (30, 3000))
    assert few.low < few.value < few.high
    assert many.high - many.low < 0.3 * (few.high - few.low)
    assert many.low == pytest.approx(many.value - 1.96 / np.sqrt(3000), abs=0.01)
    assert many.excludes_zero
    assert not bootstrap(rng.normal(0, 1, 50), rng).excludes_zero


def test_top_paths_matter_more_than_random_ones_where_the_model_is_linear_in_them() -> None:
    """With `sum` aggregation and no activation to speak of, the strongest path must cost more than a random one."""
    asked = [case for seed in range(4) for case in cases(seed, aggregate="sum", layer_norm=False, residual=False)]
    curve = trace_deletions(asked, np.random.default_rng(0), counts=(1,))
    difference = curve.difference(0, np.random.default_rng(0))
    assert difference is not None
    assert difference.value > 0
    assert difference.excludes_zero


def test_difference_can_be_confined_to_triples_that_keep_a_path() -> None:
    drops: dict[Removed, np.ndarray] = {
        "top": np.array([[9.0], [1.0], [2.0]]),
        "random": np.array([[1.0], [0.5], [0.5]]),
    }
    cut: dict[Removed, np.ndarray] = {"top": np.array([[True], [False], [False]]), "random": np.zeros((3, 1), bool)}
    curve = DeletionCurve((1,), np.ones((3, 1), np.int64), drops, cut, 0, 0, 0)
    whole = curve.difference(0, np.random.default_rng(0))
    confined = curve.difference(0, np.random.default_rng(0), connected=True)
    assert whole is not None
    assert confined is not None
    assert (whole.value, confined.value) == (10 / 3, 1.0)
    nothing = DeletionCurve(
        (1,), np.ones((3, 1), np.int64), drops, {"top": ~cut["random"], "random": cut["random"]}, 0, 0, 0
    )
    assert nothing.difference(0, np.random.default_rng(0), connected=True) is None
