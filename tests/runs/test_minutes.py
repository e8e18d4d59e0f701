"""Where nobody sees a bar, a line per minute says where a run is; the clock of these tests is moved by hand."""

import json
import re
import threading
from pathlib import Path

import pytest

from kgcf import progress
from kgcf.pipeline import Execution, fit
from kgcf.progress import MINUTE, Minutes, Position, counting, showing
from kgcf.runs.folder import RunFolder
from kgcf.runs.stages import _stages
from kgcf.runs.training_log import TrainingLog
from kgcf.runs.watch import Watcher
from kgcf.training.loop import Listener
from tests.memory.remembering import CHANGES
from tests.training.tiny import dataset

MEANS = {"factual": 0.1234, "queries_per_second": 1234.5, "unreached": 0.0}


class Hand:
    """A clock that stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_training_says_where_it_is_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Hand()
    with Watcher(shown=True, clock=clock) as watcher:
        for step in range(1, 101):
            watcher.step(step, 400, step // 50, MEANS)
            clock.now += 6
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 9  # in ten minutes less six seconds
    assert lines[0] == "training 3%  epoch 1  factual 0.1234  1,234 queries/s  39 min left"
    assert lines[-1].startswith("training 23%  epoch 2  factual 0.1234")
    assert lines[-1].endswith("31 min left")


def test_every_stage_of_a_training_says_where_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With minutes that take no time there is a line for every step, on the screen and in the log."""
    monkeypatch.setattr(progress, "MINUTE", 0.0)
    with Watcher(shown=True) as watcher:
        fit(dataset(), tmp_path / "run", changes=CHANGES, execution=Execution(watcher, watcher.say))
    lines = capsys.readouterr().err.splitlines()
    for stage in ("training", "validation", "memory", "weighing paths and memory"):
        assert any(re.match(rf"{stage} \d+%", line) for line in lines), stage
    assert any(re.match(r"memory \d+%  epoch 2  tails \d.*  relations \d.* queries/s  .* left", line) for line in lines)
    logged = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert {"training", "memory", None} <= {line.get("stage") for line in logged}


def test_nobody_is_told_what_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Hand()
    with Watcher(shown=False, clock=clock) as watcher:
        for step in (1, 2, 3):
            watcher.step(step, 3, 0, MEANS)
            clock.now += MINUTE
    assert capsys.readouterr().err == ""


def test_on_a_terminal_there_is_a_bar_and_no_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    clock = Hand()
    with Watcher(shown=True, clock=clock) as watcher:
        for step in (1, 2, 3):
            watcher.step(step, 3, 0, MEANS)
            clock.now += MINUTE
    assert "training 67%" not in capsys.readouterr().err


def test_the_log_of_the_run_says_it_too(tmp_path: Path) -> None:
    clock, folder = Hand(), RunFolder(tmp_path)
    log = TrainingLog(folder, Listener(), True, clock)
    for step in (1, 2, 3):
        log.step(step, 9, 0, MEANS)
        clock.now += MINUTE
    log.epoch({"epoch": 1.0})
    first, second, last = map(json.loads, folder.file("log.jsonl").read_text().splitlines())
    assert (first["stage"], first["share"], first["seconds_left"]) == ("training", 0.2222, 420)
    assert (first["factual"], first["queries_per_second"], first["within_epoch"]) == (0.1234, 1234.5, 1)
    assert (second["share"], last) == (0.3333, {"epoch": 1.0})
    TrainingLog(folder, Listener(), False, clock).step(1, 9, 0, MEANS)
    folder.rewrite_log([{"epoch": 1.0}])
    assert len(folder.file("log.jsonl").read_text().splitlines()) == 3
    with folder.file("log.jsonl").open("a") as file:
        file.write('{"stage": "tra')
    folder.rewrite_log([{"epoch": 1.0}])
    assert folder.file("log.jsonl").read_text() == '{"epoch": 1.0}\n'


@pytest.mark.parametrize("stage", ["entity space", "matching"])
def test_stages_before_training_say_where_they_are(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Hand()
    said: list[str] = []
    monkeypatch.setattr(Minutes, "__init__", lambda self, tell, _=None: _minutes(self, tell, clock))
    stages = _stages(RunFolder(tmp_path), said.append)
    with stages.showing(stage, 200) as advance:
        for _ in range(4):
            clock.now += MINUTE / 2
            advance(25)
    assert said == [f"{stage} 25%  3 min left", f"{stage} 50%  2 min left"]
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(line["stage"], line["share"]) for line in logged] == [(stage, 0.25), (stage, 0.5)]


def _minutes(minutes: Minutes, tell: progress.Tell, clock: Hand) -> None:
    minutes.tell, minutes.clock = tell, clock
    minutes._began, minutes._told = None, 0.0
    minutes._lock = threading.Lock()


def test_a_long_ranking_says_where_it_is() -> None:
    clock = Hand()
    heard: list[Position] = []
    with counting(10, heard.append, clock) as advance:
        advance(1)
        clock.now += MINUTE
        advance(4)
    assert heard == [Position(5, 10, MINUTE)]
    assert heard[0].sentence("validation") == "validation 50%  60 s left"


def test_commands_print_lines_instead_of_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Hand()
    monkeypatch.setattr(Minutes, "__init__", lambda self, tell, _=None: _minutes(self, tell, clock))
    with showing("test", 4) as advance:
        clock.now += MINUTE
        advance(1)
    assert capsys.readouterr().err == "test 25%  3 min left\n"
