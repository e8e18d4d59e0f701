"""A time for training: what is surveyed, what is chosen, what stays as the user said, and what is refused."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

from kgcf.causal.cached_stages import CausalStages
from kgcf.cli import train as training_command
from kgcf.cli.train import train_command
from kgcf.config import configure
from kgcf.data.dataset import Dataset
from kgcf.errors import SettingsError
from kgcf.pipeline import Execution, fit, resume, step_context
from kgcf.runs import time_budget
from kgcf.runs.folder import SURVEY, RunFolder
from kgcf.runs.survey import rankings, steps
from kgcf.runs.survey.graph import options_for, survey_graph
from kgcf.runs.survey.ground import Allowance, Ground
from kgcf.runs.survey.stages import count_questions
from kgcf.runs.time_budget import SHORT, USUAL, longest_training, time_limit
from kgcf.storage import map_arrays
from kgcf.training.choice import DEPTHS, NEGATIVES, TimeError
from kgcf.training.cost_model import Work
from kgcf.training.loop import Listener
from kgcf.training.passes import Passes
from kgcf.training.reach import measure_reach
from kgcf.training.survey import PassCost, Questions, RankCost, Survey
from tests.training.tiny import dataset, write_folder

SMALL = ("encoder.width=8", "decoder.hidden=8", "training.epochs=6", "training.batch_size=8", "training.threads=1")
FIXED = (*SMALL, "training.epochs=2", "encoder.layers=2", "objective.negatives=4")


def found(milliseconds: float = 400.0, questions: int = 10) -> Survey:
    """A survey in which a pass of two layers takes so long, and that of three twice as long."""
    passes = tuple(PassCost(layers, 32, Work(9, 9), milliseconds * (layers - 1), 1, True) for layers in (2, 3))
    ranks = tuple(RankCost(layers, Work(9, 9), 1.0, True) for layers in (2, 3))
    return Survey((0.2, 0.7, 0.9), passes, ranks, Questions(questions, 6, 10, 10), 104, 8, {}, 0.1)


@pytest.fixture
def surveyed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Let a made-up survey decide, and note what is asked of it."""
    asked: list[object] = []

    def pretend(_ground: object, options: object, _reach: object, seconds: float) -> Survey:
        asked.extend([options, seconds])
        return found()

    monkeypatch.setattr(time_budget, "survey_graph", pretend)
    return asked


def weights(path: Path) -> dict[str, bytes]:
    return {name: values.tobytes() for name, values in map_arrays(path / "model.safetensors").items()}


class Stopping(Listener):
    """Ctrl-C after some steps."""

    def __init__(self, after: int) -> None:
        self._after = after

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        if done == self._after:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("wanted", "changes", "limit"),
    [
        ("auto", (), USUAL),
        ("auto", ("encoder.layers=2", "objective.negatives=4"), USUAL),
        ("auto", ("encoder.layers=2", "objective.negatives=4", "training.epochs=3"), None),
        ("auto", ("encoder.layers=2", "objective.negatives=4", "training.budget=300"), None),
        ("auto", ("encoder.layers=2", "training.budget=300"), USUAL),
        ("90s", ("encoder.layers=2", "objective.negatives=4", "training.epochs=3"), 90.0),
        ("none", (), None),
        (None, (), None),
        (12, (), 12.0),
    ],
)
def test_who_gets_how_much_time(
    wanted: str | float | None, changes: tuple[str, ...], limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_budget, "SHORT", 0.0)
    given = configure("default", changes=changes)
    assert time_limit(wanted, dataset(), given, given) == limit


def test_a_graph_too_small_to_take_long_is_not_surveyed() -> None:
    """Where even all updates and messages of 8 layers end in seconds, the preset stays as it is."""
    given = configure("default")
    assert 0 < longest_training(dataset(), given) < SHORT
    assert time_limit("auto", dataset(), given, given) is None
    assert time_limit("5m", dataset(), given, given) == 300
    longer = configure("default", changes=["training.epochs=10000"])
    assert time_limit("auto", dataset(), longer, longer) == USUAL


def test_benchmarks_keep_their_files_unless_a_time_is_given() -> None:
    known = replace(dataset(), benchmark="umls")
    given = configure("default", "umls")
    assert time_limit("auto", known, given, given) is None
    assert time_limit("5m", known, given, given) == 300


def test_a_preset_with_a_budget_of_its_own_keeps_to_it_unless_a_time_is_given() -> None:
    assert time_limit("auto", dataset(), configure("default"), configure("fast")) is None
    assert time_limit("5m", dataset(), configure("default"), configure("fast")) == 300


def test_the_choice_becomes_ordinary_settings(surveyed: list[object], tmp_path: Path) -> None:
    """A pass of .4 s: in four minutes only two layers, 570 passes or fewer, of the 624 of six epochs."""
    said: list[str] = []
    run = fit(
        dataset(), tmp_path / "run", preset="nbfnet", changes=SMALL, time=240, execution=Execution(say=said.append)
    )
    settings = run.folder.settings()
    assert (settings.encoder.layers, settings.objective.negatives) == (2, 32)
    assert settings.training.budget is not None
    assert 400 <= settings.training.budget <= 570
    assert settings.training.budget % 8 == 0
    kept = json.loads((tmp_path / "run" / SURVEY).read_text())
    assert kept["seconds"] == 240
    assert kept["choice"]["budget"] == settings.training.budget
    assert Survey.from_json(kept["survey"]) == found()
    assert any("→" in line and "400" in line for line in said)
    assert any(line.startswith("  → 2 layers, 32 negatives") for line in said)
    assert run.folder.history()[-1]["steps"] == settings.training.budget / 8
    run.folder.check()
    assert run.evaluate("test").protocol["time"]["choice"]["layers"] == 2


def test_the_same_configuration_gives_the_same_weights_and_resuming_needs_no_time(
    surveyed: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(dataset(), tmp_path / "whole", preset="nbfnet", changes=SMALL, time=240)
    with pytest.raises(KeyboardInterrupt):
        fit(dataset(), tmp_path / "stopped", preset="nbfnet", changes=SMALL, time=240, execution=Execution(Stopping(7)))
    monkeypatch.setattr(time_budget, "survey_graph", None)
    config = whole.folder.file("config.toml")
    budgets = {path: RunFolder(tmp_path / path).settings().training.budget for path in ("whole", "stopped")}
    change = f"training.budget={budgets['stopped']}"  # the time that reading took differs
    again = fit(dataset(), tmp_path / "again", preset="nbfnet", config=config, changes=[change], time="none")
    resume(tmp_path / "stopped")
    assert weights(tmp_path / "stopped") == weights(again.folder.path)
    assert not again.folder.file(SURVEY).exists()


def test_what_somebody_said_is_kept(surveyed: list[object], tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[objective]\nnegatives = 4\n[training]\nvalidate_triples = 3\n")
    with pytest.raises(TimeError, match="624 passes"):  # the budget is none, by word: all epochs
        fit(dataset(), tmp_path / "run", config=file, changes=[*SMALL, "training.budget=none"], time=240)
    assert not (tmp_path / "run").exists()
    changes = [*SMALL, "encoder.layers=3", "training.budget=16"]
    run = fit(dataset(), tmp_path / "run", preset="nbfnet", config=file, changes=changes, time=2400)
    assert surveyed[-2] == options_for(3, 4, 40)
    assert (surveyed[-1], run.settings.training.budget) == (2400.0, 16)
    assert run.settings.training.validate_triples == 3


def test_options_are_what_may_be_chosen() -> None:
    assert tuple(options_for(None, None, 10_000).depths) == DEPTHS
    assert tuple(options_for(None, None, 10_000).negatives) == NEGATIVES
    assert tuple(options_for(5, None, 140).negatives) == (32, 64)
    assert (tuple(options_for(5, 7, 10).depths), tuple(options_for(5, 7, 10).negatives)) == ((5,), (7,))
    assert tuple(options_for(None, None, 10).negatives) == (32,)


@pytest.mark.parametrize(("time", "message"), [("abc", "is no time"), ("0", "no time to train"), ("-5s", "no time to")])
def test_bad_times_are_refused_before_anything(time: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message):
        fit("no such data", tmp_path / "run", time=time)
    said = CliRunner().invoke(command(), ["no such data", "--time", time, "--output", str(tmp_path / "run")])
    assert isinstance(said.exception, SettingsError)
    assert message in str(said.exception)
    assert not (tmp_path / "run").exists()


def command() -> typer.Typer:
    app = typer.Typer()
    app.command()(train_command)
    return app


def test_too_little_time_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    data = write_folder(dataset(), tmp_path / "tiny")
    changes = [part for change in FIXED for part in ("--set", change)]
    wanted = [str(data), "--time", "0.1s", "--preset", "nbfnet", "--output", str(tmp_path / "run"), *changes]
    said = CliRunner().invoke(command(), wanted)
    assert isinstance(said.exception, TimeError)
    assert "A time of 0.1 s is too little for this graph on this machine: the least is about" in str(said.exception)
    assert "Nothing was written" in str(said.exception)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("compiled", "suffices"), [(0.0, False), (100.0, False), (3500.0, True)])
def test_a_refusal_because_of_compiling_says_that_the_same_command_will_do(
    compiled: float, suffices: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour is gone before the choice, all of it but 100 seconds, or a little of it, by compiling."""
    data = write_folder(dataset(), tmp_path / "tiny")
    monkeypatch.setattr(training_command, "monotonic", lambda: time.monotonic() - 3600)
    monkeypatch.setattr(time_budget, "compiling_seconds", lambda: compiled)
    changes = [part for change in FIXED for part in ("--set", change)]
    wanted = [str(data), "--time", "30m", "--preset", "nbfnet", "--output", str(tmp_path / "run"), *changes]
    said = CliRunner().invoke(command(), wanted)
    assert isinstance(said.exception, TimeError)
    assert ("the same command suffices" in str(said.exception)) == suffices
    assert ("58 min of it went into compiling" in str(said.exception)) == suffices


def test_reading_counts_as_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command began an hour ago, the clock says: nothing is left of its half hour."""
    data = write_folder(dataset(), tmp_path / "tiny")
    monkeypatch.setattr(training_command, "monotonic", lambda: time.monotonic() - 3600)
    changes = [part for change in FIXED for part in ("--set", change)]
    wanted = [str(data), "--time", "30m", "--preset", "nbfnet", "--output", str(tmp_path / "run"), *changes]
    said = CliRunner().invoke(command(), wanted)
    assert isinstance(said.exception, TimeError)
    assert "reading and survey 60 min" in str(said.exception)


def ground(data: Dataset, *changes: str) -> Ground:
    settings = configure("nbfnet", changes=(*SMALL, "training.remove=triple", *changes))
    return Ground(data, settings, None, None, torch.device("cpu"), step_context)


def test_a_survey_of_a_real_graph() -> None:
    """Depths are counted as they are planned, and only those that may be chosen are looked at."""
    data = dataset()
    reach = measure_reach(data.graph, data.valid.queries, 4, "triple", 0)
    survey = survey_graph(ground(data), options_for(None, 4, 40), reach, 600.0)
    assert tuple(cost.layers for cost in survey.passes) == DEPTHS == tuple(rank.layers for rank in survey.ranks)
    updates = [cost.work.updates for cost in survey.passes]
    assert updates == sorted(updates)
    assert updates[0] > 0
    assert all(cost.milliseconds > 0 for cost in survey.passes)
    assert all(rank.milliseconds > 0 for rank in survey.ranks)
    assert (survey.sweep, survey.batch) == (8 * -(-len(Passes(data.graph, 8, 0.25)) // 8), 8)  # whole steps
    asked = len({(h, r) for h, r, _ in data.graph.triples.tolist()})  # what `complete` would ask
    assert survey.questions == Questions(valid=11, valid_triples=6, calibration=11 + asked + 10, test=10)
    bare = replace(data, valid=replace(data.valid, queries=data.valid.queries[:0]))
    assert count_questions(bare) == Questions(0, 0, calibration=10, test=10)  # nothing to fit, all to report
    assert list(survey.stages) == ["fitting probabilities"]
    assert survey.reach == reach.shares


def test_expensive_depths_are_predicted_and_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    real = steps.time_steps

    def noted(ground: Ground, layers: int, *rest: Any) -> list[tuple[Work, float]]:
        ran.append(layers)
        return real(ground, layers, *rest)

    monkeypatch.setattr(steps, "time_steps", noted)
    here = ground(dataset())
    costs = steps.survey_passes(here, (2, 3, 4), (4,), Allowance(1e-9, here.clock), 1e9)
    assert [cost.layers for cost in costs] == [2]
    costs = steps.survey_passes(here, (2, 3, 4), (4,), Allowance(1e9, here.clock), 1e9)
    assert [(cost.layers, cost.measured) for cost in costs] == [(2, True), (3, False), (4, True)]
    assert 3 not in ran
    hopeless = steps.survey_passes(here, (2, 3, 4), (4,), Allowance(1e9, here.clock), 1e-9)
    assert [cost.layers for cost in hopeless] == [2]


def test_what_is_compiled_first_leaves_the_time_to_measure_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a new machine the first ranking took all of the survey's time, and deeper ones were guessed at four times."""
    now, real = [0.0], rankings._time_ranking

    def compiling(*arguments: Any) -> float:
        now[0] += 100.0 if now[0] == 0.0 else 0.0
        return real(*arguments)

    monkeypatch.setattr(rankings, "_time_ranking", compiling)
    here = replace(ground(dataset()), clock=lambda: now[0])
    found = rankings.survey_rankings(here, (2, 3, 4), Allowance(10.0, here.clock))
    assert [cost.measured for cost in found] == [True, False, True]


def test_losses_that_need_substitutes_are_part_of_what_is_timed() -> None:
    """They are not matched yet; what stands in for them has to be paid for."""
    data = dataset()
    treated = ground(data, "decoder.treatment=true", "objective.alpha=0.1", "objective.beta=0.1")
    assert steps._stand_ins(treated) is None
    made = time_budget._treatment(treated.settings, data, lambda _: None)
    stand_ins = steps._stand_ins(replace(treated, treatment=made))
    assert stand_ins is not None
    assert stand_ins.matched.all()
    assert steps.time_steps(replace(treated, treatment=made), 2, 4, 1, 1)


def test_the_treatment_of_the_survey_is_that_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made once and kept; the weights are those that a run without a time has."""
    changes, made = [*FIXED, "objective.alpha=0"], []
    real = CausalStages.treatment

    def noted(stages: CausalStages, *arguments: Any, **more: Any) -> Any:
        made.append(1)
        return real(stages, *arguments, **more)

    monkeypatch.setattr(CausalStages, "treatment", noted)
    timed = fit(dataset(), tmp_path / "timed", changes=changes, time="10m")
    assert len(made) == 1
    plain = fit(dataset(), tmp_path / "plain", changes=changes, time="none")
    assert weights(timed.folder.path) == weights(plain.folder.path)
    assert timed.folder.settings() == plain.folder.settings()
