import itertools

import numpy as np
import pytest
import torch

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, hide_nothing, hide_triples
from kgcf.errors import SettingsError
from kgcf.explanation.importance import weigh_edges
from kgcf.explanation.lattice import Lattice
from kgcf.explanation.paths import (
    FoundPaths,
    Path,
    RandomPaths,
    Weighting,
    find_best_paths,
    find_shortest_paths,
)
from kgcf.model.kgcf import KGCF
from kgcf.propagation.plan.planner import Planner
from tests.propagation.random_graphs import random_graph

from .path_oracle import Step, all_paths, dense_importance, path_weight, small_model

EVERYTHING = 10_000


def lattice_of(
    model: KGCF,
    graph: KnowledgeGraph,
    asked: tuple[int, int, int],
    hidden: HiddenTriples,
    treated: bool | None = None,
) -> tuple[Lattice, np.ndarray, float]:
    head, relation, tail = asked
    plan = Planner(graph, model.encoder.settings.layers).plan([head], [relation], [[tail]], hidden)
    importance = weigh_edges(model, plan, None if treated is None else torch.tensor([[treated]]))
    return Lattice.of(plan), importance.values, importance.logit


def steps(path: Path) -> tuple[Step, ...]:
    return tuple((edge.head, edge.relation, edge.tail) for edge in path.edges)


CHOICES: list[dict[str, object]] = [
    {},
    {"message": "transe", "aggregate": "sum"},
    {"message": "rotate", "aggregate": "max", "context": "layers", "width": 16},
    {"aggregate": "mean", "dependent": True, "context": "decoder"},
    {"context": "unreached", "layer_norm": False},
]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("averaged", [True, False])
def test_best_paths_equal_all_paths_sorted(seed: int, averaged: bool) -> None:
    weighting: Weighting = "mean" if averaged else "sum"
    graph = random_graph(seed, triple_count=22, weighted=seed == 4)
    treated = True if seed % 2 else None
    model = small_model(seed, graph.relation_count, treatment=treated is not None, **CHOICES[seed])
    compared = 0
    for head, tail in itertools.product([0, 1, 3], range(graph.entity_count)):
        asked = (head, seed % (2 * graph.relation_count), tail)
        hidden = hide_triples(graph, [head], [asked[1]], [tail])
        lattice, importance, logit = lattice_of(model, graph, asked, hidden, treated)
        dense_logit, gradient = dense_importance(model, graph, asked, hidden, treated)
        assert logit == pytest.approx(dense_logit, abs=1e-10)
        every = list(all_paths(graph, hidden.triples, head, tail, 4))
        expected = sorted((path_weight(graph, gradient, path, averaged) for path in every), reverse=True)
        found = find_best_paths(lattice, importance, EVERYTHING, weighting)
        assert not found.truncated
        assert sorted(steps(path) for path in found.paths) == sorted(every)
        np.testing.assert_allclose([path.weight for path in found.paths], expected, atol=1e-10)
        for path in found.paths:
            assert path.weight == pytest.approx(path_weight(graph, gradient, steps(path), averaged), abs=1e-10)
        few = find_best_paths(lattice, importance, 3, weighting)
        np.testing.assert_allclose([path.weight for path in few.paths], expected[:3], atol=1e-10)
        assert not few.truncated
        compared += len(every)
    assert compared > 50


def test_best_paths_with_arbitrary_weights_and_many_ties() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        graph = random_graph(seed, entity_count=8, triple_count=20)
        lattice, importance, _ = lattice_of(small_model(0, 2), graph, (0, 0, 3), hide_nothing(1))
        for weights in (rng.normal(size=len(importance)), rng.integers(-1, 2, len(importance)).astype(float)):
            for weighting in ("mean", "sum"):
                every = find_best_paths(lattice, weights, EVERYTHING, weighting).paths
                assert len({steps(path) for path in every}) == len(every)
                for top in (1, 2, 7):
                    few = find_best_paths(lattice, weights, top, weighting).paths
                    np.testing.assert_allclose(
                        [path.weight for path in few], [path.weight for path in every[:top]], atol=1e-12
                    )


def test_paths_stop_at_the_tail_and_use_layers_from_one() -> None:
    graph = random_graph(2, triple_count=22)
    lattice, importance, _ = lattice_of(small_model(0, 2), graph, (0, 1, 2), hide_nothing(1))
    paths = find_best_paths(lattice, importance, EVERYTHING).paths
    assert len(paths) >= 8
    for path in paths:
        visited = [path.edges[0].head, *(edge.tail for edge in path.edges)]
        assert visited[0] == 0
        assert visited[-1] == 2
        assert len(set(visited)) == len(visited)
        assert [edge.layer for edge in path.edges] == list(range(1, len(path) + 1))
        for edge in path.edges:
            h, r, t = graph.triples[edge.triple]
            travelled = (h, r, t) if edge.relation < 2 else (t, r + 2, h)
            assert (edge.head, edge.relation, edge.tail) == travelled


def test_a_search_that_stops_early_says_so_and_bounds_what_it_missed() -> None:
    rng = np.random.default_rng(1)
    graph = random_graph(1, entity_count=10, triple_count=40)
    lattice, importance, _ = lattice_of(small_model(0, 2), graph, (1, 0, 3), hide_nothing(1))
    weights = rng.normal(size=len(importance))
    every = find_best_paths(lattice, weights, EVERYTHING).paths
    stopped = [find_best_paths(lattice, weights, 20, limit=limit) for limit in (1, 10, 30, 100, 300)]
    assert any(found.truncated for found in stopped)
    for found in stopped:
        left_out = [path for path in every if steps(path) not in {steps(kept) for kept in found.paths}]
        bound = found.bound if found.bound is not None else min(path.weight for path in found.paths)
        assert max(path.weight for path in left_out) <= bound + 1e-12
    assert not find_best_paths(lattice, weights, 20).truncated


def test_importance_over_all_layers_is_the_gradient_by_one_weight_for_all_layers() -> None:
    graph = random_graph(5, triple_count=22)
    model = small_model(5, 2)
    asked, hidden = (0, 1, 4), hide_nothing(1)
    lattice, importance, _ = lattice_of(model, graph, asked, hidden)
    totals = lattice.over_layers(importance)
    _, gradient = dense_importance(model, graph, asked, hidden, None)
    sources = lattice.entities[lattice.sources]
    targets = np.repeat(lattice.entities, np.diff(lattice.offsets))
    positions = graph.find_edges(targets, graph.inverse(lattice.relations), sources)
    np.testing.assert_allclose(totals, gradient.sum(axis=0)[positions], atol=1e-10)
    assert np.abs(totals - importance).max() > 1e-3
    assert len(lattice.over_layers(np.zeros(0))) == 0


def test_no_path() -> None:
    graph = random_graph(3)
    last = graph.entity_count - 1  # isolated
    for asked in ((0, 0, last), (last, 0, 0), (0, 0, 0)):
        lattice, importance, _ = lattice_of(small_model(0, 2), graph, asked, hide_nothing(1))
        assert find_best_paths(lattice, importance, 5) == FoundPaths(())
        assert find_shortest_paths(lattice, importance, 5) == ()
        assert RandomPaths(lattice, importance).draw(1, np.random.default_rng(0)) is None


def test_a_hidden_triple_is_on_no_path() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [0, 1, 1], [0, 0, 2], [2, 0, 1]], 3, 2)
    hidden = hide_triples(graph, [0], [0], [1])
    lattice, importance, _ = lattice_of(small_model(0, 2), graph, (0, 0, 1), hidden)
    found = {steps(path) for path in find_best_paths(lattice, importance, 9).paths}
    assert found == {((0, 1, 1),), ((0, 0, 2), (2, 0, 1))}


def test_shortest_paths_are_the_shortest() -> None:
    for seed in range(5):
        graph = random_graph(seed)
        lattice, importance, _ = lattice_of(small_model(0, 2), graph, (0, 0, 4), hide_nothing(1))
        every = sorted(len(path) for path in all_paths(graph, np.zeros(0, np.int32), 0, 4, 4))
        for top in (1, 4, EVERYTHING):
            paths = find_shortest_paths(lattice, importance, top)
            assert [len(path) for path in paths] == every[:top]
            assert len({steps(path) for path in paths}) == len(paths)


def test_random_paths_are_uniform_over_the_simple_paths_of_a_length() -> None:
    graph = random_graph(2)
    lattice, importance, _ = lattice_of(small_model(0, 2), graph, (0, 0, 4), hide_nothing(1))
    every = list(all_paths(graph, np.zeros(0, np.int32), 0, 4, 4))
    generator = np.random.default_rng(0)
    source = RandomPaths(lattice, importance)
    for length in range(1, 5):
        expected = [path for path in every if len(path) == length]
        if not expected:
            assert source.draw(length, generator) is None
            continue
        counts = dict.fromkeys(expected, 0)
        draws = 200 * len(expected)
        for _ in range(draws):
            drawn = source.draw(length, generator)
            assert drawn is not None
            counts[steps(drawn)] += 1
        squares = sum((count - 200) ** 2 / 200 for count in counts.values())
        assert squares < len(expected) + 5 * np.sqrt(2 * len(expected)) + 5  # χ², five standard deviations


def test_impossible_wishes_are_refused() -> None:
    lattice, importance, _ = lattice_of(small_model(0, 2), random_graph(0), (0, 0, 1), hide_nothing(1))
    with pytest.raises(SettingsError, match="at least one path"):
        find_best_paths(lattice, importance, 0)
    with pytest.raises(SettingsError, match="mean, sum"):
        find_best_paths(lattice, importance, 1, "median")  # type: ignore[arg-type]
