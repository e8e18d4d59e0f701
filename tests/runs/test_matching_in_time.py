"""What matching will take: whole slices in a space like the real one, extrapolated; nothing where it is kept."""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from kgcf.causal.cache import Cache, user_cache
from kgcf.causal.cached_stages import CausalStages
from kgcf.causal.counterfactual.matching import Pool
from kgcf.causal.embedding import EntitySpace, SpaceSettings
from kgcf.causal.relation_graphs import relation_graphs
from kgcf.config import configure
from kgcf.data.dataset import Dataset
from kgcf.data.graph import KnowledgeGraph
from kgcf.pipeline import step_context
from kgcf.runs.survey import matching
from kgcf.runs.survey.ground import Allowance, Ground
from kgcf.runs.survey.matching import estimate_matching, rough_space
from kgcf.runs.survey.side_by_side import measure_gain
from kgcf.runs.survey.stages import StageTimes, space_seconds
from tests.training.tiny import dataset

PREPARE, SEARCH = {True: 10.0, False: 50.0}, {True: 1.0, False: 3.0}  # seconds, by the treatment that is looked for


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def ground(data: Dataset, clock: Clock | None = None) -> Ground:
    """The default preset on the data."""
    settings = configure("default", changes=["training.remove=triple", "space.dimension=8"])
    treatment = CausalStages(Cache(None)).treatment(data.graph, settings.treatment, data.entities, data.relations)
    made = Ground(data, settings, treatment, treatment, torch.device("cpu"), step_context)
    return made if clock is None else replace(made, clock=clock)


def some_space(here: Ground) -> EntitySpace:
    graph = here.data.graph
    return rough_space(graph, list(relation_graphs(graph)), here.settings.space)


def treatments(here: Ground) -> NDArray[np.bool_]:
    assert here.treatment is not None
    return here.treatment.treated_triples(here.data.graph.triples, leave_one_out=True)


@pytest.mark.parametrize(("size", "allowed"), [(2048, 1e9), (5, 1e9), (2048, 0.0)])
def test_slices_stand_for_all_triples_of_their_treatment(
    size: int, allowed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is searched, a few triples or whole slices: what a relation and what a triple take add up to all."""
    clock = Clock()
    here, asked = ground(dataset(), clock), list[int]()

    def searches(_pool: Pool, _space: EntitySpace, forward: Any, treated: Any) -> Iterator[Any]:
        assert len(set(treated.tolist())) == len(set(forward[:, 1].tolist())) == 1
        wanted = not treated[0]
        clock.now += PREPARE[wanted]

        def search(heads: NDArray[np.int64], tails: NDArray[np.int64]) -> None:
            assert len(heads) == len(tails)
            asked.append(len(heads))
            clock.now += SEARCH[wanted] * len(heads)

        yield search, np.arange(len(forward))

    monkeypatch.setattr(Pool, "searches", searches)
    monkeypatch.setattr(matching, "SLICE", size)
    monkeypatch.setattr(matching, "FIRST", 3)
    found = estimate_matching(here, some_space(here), Allowance(allowed, clock))
    treated, relations = treatments(here), here.data.graph.triples[:, 1]
    expected = 0.0
    for value in (True, False):
        assert (treated == value).any()
        once = PREPARE[not value] * len(np.unique(relations[treated == value]))
        expected += once + SEARCH[not value] * int((treated == value).sum())
    assert found == pytest.approx(expected)  # by this clock threads gain nothing
    assert max(asked) <= (3 if allowed == 0 else size)
    assert len(asked) >= 2 * (matching.LEAST + 1)
    monkeypatch.setattr(matching, "measure_gain", lambda _work, _clock: 1e9)
    assert estimate_matching(here, some_space(here), Allowance(allowed, clock)) == pytest.approx(
        sum(PREPARE[not value] * len(np.unique(relations[treated == value])) for value in (True, False)), abs=1e-3
    )


def test_every_triple_is_in_the_slice_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "SLICE", 4)
    here = ground(dataset())
    graph, treated = here.data.graph, treatments(here)
    slices = matching._Slices.of(graph, treated)
    seen = {tuple(slices.around(row).tolist()) for row in range(len(graph))}
    assert sorted(row for rows in seen for row in rows) == list(range(len(graph)))
    assert max(map(len, seen)) == 4
    for rows in seen:
        assert len({(int(graph.triples[row, 1]), bool(treated[row])) for row in rows}) == 1


def test_entities_with_the_same_neighbours_are_near_each_other_in_a_rough_space() -> None:
    """Two hubs with twenty leaves each: a leaf's neighbours are those of its own hub, and no space is random."""
    leaves = [(hub, 0, 2 + 20 * hub + leaf) for hub in (0, 1) for leaf in range(20)]
    graph = KnowledgeGraph.build(np.array(leaves), 43, 1)
    space = rough_space(graph, list(relation_graphs(graph)), configure().space)
    own, other = space.vectors[2:22], space.vectors[22:42]
    within = np.linalg.norm(own[:, None] - own[None], axis=2).mean()
    across = np.linalg.norm(own[:, None] - other[None], axis=2).mean()
    assert within < across / 2
    assert not space.vectors[42].any()  # no edge, as in the real one
    again = rough_space(graph, list(relation_graphs(graph)), configure().space)
    assert np.array_equal(space.vectors, again.vectors)


def test_what_is_kept_from_earlier_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a space both are estimated, with it matching in that very space, with the pairs nothing."""
    here, stages = ground(dataset()), CausalStages(user_cache())
    spaces: list[EntitySpace] = []

    def estimate(_ground: Ground, space: EntitySpace, allowance: Allowance) -> float:
        spaces.append(space)
        return allowance.seconds

    monkeypatch.setattr("kgcf.runs.survey.stages.estimate_matching", estimate)
    times = StageTimes(here, stages, Allowance(7.0, here.clock))
    assert list(times.seconds()) == ["entity space", "matching", "fitting probabilities"]
    space = stages.space(here.data.graph, here.settings.space)
    assert not np.array_equal(spaces[0].vectors, space.vectors)
    found = times.seconds()
    assert (list(found), found["matching"]) == (["matching", "fitting probabilities"], 7.0)
    assert np.array_equal(spaces[1].vectors, space.vectors)
    assert here.treatment is not None
    stages.table(space, here.treatment, "observed", True, "triple")
    assert list(times.seconds()) == ["fitting probabilities"]
    assert len(spaces) == 2


def test_threads_gain_what_the_machine_lets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between nothing and the number of cores: three cores, of which work side by side finds one, two or all free."""
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    for free, gain in [(1, 1.0), (2, 2.0), (3, 3.0), (9, 3.0)]:
        clock, calls = Clock(), list[int]()

        def work(clock: Clock = clock, calls: list[int] = calls, free: int = free) -> None:
            calls.append(1)
            clock.now += 6.0 if len(calls) == 1 else 6.0 / free  # the first one alone

        assert measure_gain(work, clock) == pytest.approx(gain)
        assert len(calls) == 4
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert measure_gain(lambda: pytest.fail("there is nothing to measure"), Clock()) == 1.0


def test_the_space_takes_as_long_as_its_longest_relation_or_as_all_by_what_threads_gain() -> None:
    """Steps in large relations take longer: no cache holds the vectors."""
    settings = SpaceSettings(walks=2, length=5, epochs=1)
    assert space_seconds([10, 20, 30], settings, 1.0, 2.0) == pytest.approx(300, rel=0.01)
    assert space_seconds([10, 20, 90], settings, 1.0, 2.0) == pytest.approx(900, rel=0.01)
    assert space_seconds([32_000], settings, 1.0, 2.0) == 320_000 * 2
    assert space_seconds([320_000], settings, 1.0, 1.0) == 3_200_000 * 2.5


def test_the_survey_counts_on_what_threads_gain_for_the_space(monkeypatch: pytest.MonkeyPatch) -> None:
    here, given = ground(dataset()), list[tuple[list[int], float]]()

    def seconds(sizes: list[int], _settings: SpaceSettings, rate: float, gain: float) -> float:
        assert rate > 0
        given.append((sizes, gain))
        return 5.0

    monkeypatch.setattr("kgcf.runs.survey.stages.measure_gain", lambda _work, _clock: 1.7)
    monkeypatch.setattr("kgcf.runs.survey.stages.space_seconds", seconds)
    times = StageTimes(here, CausalStages(user_cache()), Allowance(0.0, here.clock))
    assert times.seconds()["entity space"] == 5.0
    assert given == [([len(part) for part in relation_graphs(here.data.graph)], 1.7)]
