"""A run that is given a time has a memory that fits into its share of it, as ordinary settings."""

from pathlib import Path

import pytest
import torch

from kgcf.config import Settings, configure
from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.durations import spoken
from kgcf.errors import SettingsError
from kgcf.memory.cost import Fitted
from kgcf.memory.settings import MemorySettings
from kgcf.pipeline import fit, step_context
from kgcf.runs import time_budget
from kgcf.runs.survey import memory as planning
from kgcf.runs.survey.memory import MemoryPlan, plan_memory
from kgcf.runs.time_budget import Situation, chosen_changes, settle_in_time
from kgcf.storage import map_arrays
from kgcf.training import choice
from kgcf.training.choice import TimeError
from kgcf.training.survey import Questions, Survey
from tests.memory.remembering import PATHS
from tests.prediction.test_nothing_of_test import parts
from tests.runs.test_memory_stage import many
from tests.runs.test_time_budget import SMALL, found

QUESTIONS = Questions(10, 6, 100, 50)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return read(many(parts(0)).write(tmp_path_factory.mktemp("in time") / "many"))


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """A memory of rank 3 in 7 seconds, and a question in a hundredth; notes what it was asked for."""
    asked: list[dict[str, object]] = []

    def pretend(_graph: object, settings: MemorySettings, seconds: float, **given: object) -> Fitted | None:
        asked.append({"seconds": seconds, **given})
        return None if seconds < 10 else Fitted(settings.model_copy(update={"rank": 3}), 7.0)

    monkeypatch.setattr(planning, "fit_to_time", pretend)
    monkeypatch.setattr(planning, "estimate_question_seconds", lambda *_: 0.01)
    monkeypatch.setattr(planning, "time_trials", lambda *_: 0.002)
    return asked


def plan(data: Dataset, settings: Settings, seconds: float = 60.0, kept: frozenset[str] = frozenset()) -> MemoryPlan:
    return plan_memory(data, settings, seconds, QUESTIONS, kept, lambda: 0.0)


def test_what_the_memory_adds_is_part_of_the_time(data: Dataset, fitted: list[dict[str, object]]) -> None:
    made = plan(data, configure(), kept=frozenset({"rank"}))
    assert made.settings.rank == 3
    asked = 2 * len(data.valid)
    assert (fitted[0]["asked"], fitted[0]["keep_rank"], fitted[0]["keep_epochs"]) == (asked, True, False)
    after = asked * 0.002 + (asked + QUESTIONS.calibration + QUESTIONS.test) * 0.01
    assert dict(made.stages) == {"memory": 7.0, "weighing memory": pytest.approx(after)}
    survey = made.added_to(found())
    assert survey.questions.calibration == found().questions.calibration + asked + QUESTIONS.calibration
    assert survey.stages == dict(made.stages)
    assert spoken(7.0 + after) in made.reason


def test_a_share_that_does_not_suffice_switches_memory_off_unless_it_must_be_on(
    data: Dataset, fitted: list[dict[str, object]]
) -> None:
    without = plan(data, configure(), 9.0)
    assert without.settings.enabled == "off"
    assert "none, for 25% of 9.0 s" in without.reason
    assert not without.stages
    with pytest.raises(SettingsError, match="memory.enabled is on, and 25% of .* do not suffice"):
        plan(data, configure(changes="memory.enabled=on"), 9.0)
    assert len(fitted) == 2
    off = configure(changes="memory.enabled=off")
    assert plan(data, off) == MemoryPlan(off.memory)
    assert len(fitted) == 2  # nobody measures a memory that is off


def test_a_time_that_suffices_for_the_paths_alone_is_not_refused(
    data: Dataset, fitted: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """400 passes of .4 s fit into 192 s; with 7 s of memory they do not."""
    monkeypatch.setattr(time_budget, "survey_graph", lambda *_: found())
    said: list[str] = []

    def settled(seconds: float, enabled: str = "auto") -> Settings:
        given = configure("nbfnet", changes=[*SMALL, f"memory.enabled={enabled}"])
        here = Situation(step_context, torch.device("cpu"), clock=lambda: 0.0, started=0.0)
        return settle_in_time(given, given, data, seconds, here, say=said.append).settings

    assert settled(240).memory.enabled == "auto"
    assert settled(192).memory.enabled == "off"
    assert said[-1] == "  → memory: none, for 3 min 12 s do not suffice for paths and memory"
    with pytest.raises(TimeError, match="weighing memory"):
        settled(192, "on")
    with pytest.raises(TimeError, match="least is about 3 min (8|9|10) s") as refused:  # the least is without memory
        settled(100)
    assert "weighing memory" not in str(refused.value)


def test_the_run_has_the_chosen_memory_as_ordinary_settings(
    data: Dataset, fitted: list[dict[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Survey] = []

    def choose(survey: Survey, *rest: object) -> object:
        seen.append(survey)
        return choice.choose(survey, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(time_budget, "choose", choose)
    changes = (*PATHS, "memory.epochs=2")
    timed = fit(data, tmp_path / "timed", changes=changes, time="10m")
    assert fitted[0]["keep_epochs"]
    assert seen[0].stages["memory"] == 7.0
    settings = timed.folder.settings()
    assert (settings.memory.rank, settings.memory.epochs, settings.memory.enabled) == (3, 2, "auto")
    assert {"memory.rank=3", "memory.epochs=2"} <= set(chosen_changes(settings))
    same = [*changes, *chosen_changes(settings), "memory.enabled=on"]
    plain = fit(data, tmp_path / "plain", changes=same, time="none")
    again = fit(data, tmp_path / "again", changes=[*changes, "memory.enabled=on"], time="10m")
    one, two = (dict(map_arrays(run.folder.file("memory.safetensors"))) for run in (plain, again))
    assert all((one[name] == two[name]).all() for name in one)  # nothing in training looks at a clock
