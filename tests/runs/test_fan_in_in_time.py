"""A fan-in for the time there is: surveyed where it saves messages, kept where somebody said one, written down."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from kgcf.config import configure
from kgcf.pipeline import fit, step_context
from kgcf.runs import time_budget
from kgcf.runs.survey.graph import Options, survey_graph
from kgcf.runs.survey.ground import Ground
from kgcf.runs.survey.steps import first_steps
from kgcf.training.choice import FAN_IN
from kgcf.training.passes import Epoch, Passes
from kgcf.training.reach import measure_reach
from kgcf.training.survey import Survey
from tests.runs.test_time_budget import SMALL, found
from tests.training.tiny import dataset


def surveyed(options: Options) -> Survey:
    data = dataset()
    settings = configure("nbfnet", changes=(*SMALL, "training.remove=triple"))
    ground = Ground(data, settings, None, None, torch.device("cpu"), step_context)
    reach = measure_reach(data.graph, data.valid.queries, 4, "triple", 0)
    return survey_graph(ground, options, reach, 600.0)


def test_a_fan_in_is_surveyed_where_it_saves_messages() -> None:
    both = surveyed(Options((2, 3), (4,), thinned=1)).passes
    assert [(cost.layers, cost.fan_in) for cost in both] == [(2, None), (3, None), (2, 1), (3, 1)]
    assert all(thin.work.messages < full.work.messages for full, thin in zip(both[:2], both[2:], strict=True))
    usual = surveyed(Options((2, 3), (4,))).passes  # nobody here has 64 edges
    assert {cost.fan_in for cost in usual} == {None}


def test_the_order_of_an_epoch_is_drawn_once_for_all_depths_and_fan_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a million triples it takes longer than the steps that are timed."""
    drawn: list[tuple[int, int]] = []

    def draw(self: Passes, seed: int, epoch: int, draw: Callable[..., Epoch] = Passes.epoch) -> Epoch:
        drawn.append((seed, epoch))
        return draw(self, seed, epoch)

    monkeypatch.setattr(Passes, "epoch", draw)
    assert len(surveyed(Options((2, 3), (4, 8), thinned=1)).passes) == 8
    assert drawn == [(0, 0)]


def test_the_steps_of_a_survey_ask_for_the_whole_epoch_and_then_for_it_again() -> None:
    data = dataset()
    settings = configure("nbfnet", changes=(*SMALL, "training.remove=triple", "objective.answers=1"))
    ground = Ground(data, settings, None, None, torch.device("cpu"), step_context)
    count = len(data.graph)
    asked = np.concatenate([step.triples[:, 0] for step in first_steps(ground, count // 4 + 1, 4)])
    assert sorted(asked[:count]) == list(range(count))
    assert asked[count:].tolist() == asked[: len(asked) - count].tolist()


def test_a_fan_in_that_was_said_is_surveyed_alone() -> None:
    (cost,) = surveyed(Options((3,), (4,), fan_in=1, thinned=None)).passes
    (full,) = surveyed(Options((3,), (4,), thinned=None)).passes
    assert cost.fan_in == 1
    assert cost.work.messages < full.work.messages


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ((), (None, FAN_IN)),
        (("training.fan_in=5",), (5, None)),
        (("training.fan_in=none",), (None, None)),
    ],
)
def test_the_rule_may_choose_a_fan_in_unless_somebody_said_one(
    changes: tuple[str, ...], asked: tuple[int | None, int | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Options] = []

    def pretend(_ground: object, options: Options, _reach: object, _seconds: float) -> Survey:
        seen.append(options)
        survey, fan_in = found(), options.fan_in or options.thinned
        return replace(survey, passes=tuple(replace(cost, fan_in=fan_in) for cost in survey.passes))

    monkeypatch.setattr(time_budget, "survey_graph", pretend)
    run = fit(dataset(), tmp_path / "run", preset="nbfnet", changes=[*SMALL, *changes], time=240)
    assert [(options.fan_in, options.thinned) for options in seen] == [asked]
    assert run.settings.training.fan_in == (asked[0] or asked[1])
    assert f"training.fan_in={asked[0] or asked[1] or 'none'}" in time_budget.chosen_changes(run.settings)
