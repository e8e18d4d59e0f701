"""Tables of data: tab-separated and in full when piped, and within the width of a terminal, however narrow."""

import io
import itertools
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import RenderableType
from rich.text import Text

import kgcf
from kgcf.baselines.frequency import FrequencyScorer
from kgcf.cli.answer_tables import answer_table, show_answers
from kgcf.cli.dataset_tables import facts_tables
from kgcf.cli.datasets import LISTED
from kgcf.cli.evaluation_tables import breakdown_tables, evaluation_table
from kgcf.cli.tables import Column, DataTable, show_table
from kgcf.data.statistics import describe
from kgcf.evaluation.results import evaluate
from kgcf.prediction.answers import Answer
from kgcf.screen import Screen, cell

LONG = "http://example.org/a/very/long/label/" + "x" * 200
ANSWER = Answer(LONG, "r", LONG, "A name", "r", LONG, 1, 2.5, 0.123456, "platt", "a question", True, False, True, True)


def people(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("KGCF_TABLES", "people")
    monkeypatch.setenv("COLUMNS", str(width))


def test_a_pipe_gets_every_column_in_full(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    show_answers([ANSWER])
    header, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    found = dict(zip(header, row, strict=True))
    assert (found["head"], found["head_name"], found["tail"]) == (LONG, "A name", LONG)
    assert (found["probability"], found["logit"], found["probability_from"]) == ("0.123456", "2.5", "platt")
    show_answers([replace(ANSWER, logit=None)])
    assert dict(zip(header, capsys.readouterr().out.splitlines()[1].split("\t"), strict=True))["logit"] == ""
    people(monkeypatch, 100)
    show_answers([replace(ANSWER, logit=None)])
    assert "None" not in capsys.readouterr().out


def test_cells_cannot_break_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(DataTable([Column("a\tb"), Column("c")], [["1\t2\n3", 4_000]]))
    assert capsys.readouterr().out == "a\\tb\tc\n1\\t2\\n3\t4000\n"


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_terminal_gets_what_fits(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    people(monkeypatch, width)
    show_answers([ANSWER])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "0.1235" in text
    assert text.count("x") >= 200


def test_the_least_important_columns_go_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = answer_table([ANSWER])
    left_out = [table.for_people(width)[1] for width in range(120, 20, -1)]
    assert left_out[0] == []
    assert [now for before, now in itertools.pairwise(left_out) if now != before] == [
        ["logit"],
        ["logit", "note"],
        ["rank", "logit", "note"],
    ]
    people(monkeypatch, 50)
    show_table(DataTable(LISTED, [["wn18rr", 40_943, 11, 86_835, 3_034, 3_134, "WordNet licence", "download"]]))
    text = capsys.readouterr().out
    assert "No room for: " in text
    assert "licence" in text.split("No room for: ")[1]
    assert "40,943" in text


def test_a_report_in_a_pipe_is_as_wide_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    screen = Screen()
    screen.print(DataTable([Column("a")], [[cell(LONG)], [Text("b")]]).for_people(screen.width)[0])
    written = sys.stdout
    assert isinstance(written, io.StringIO)
    assert LONG in written.getvalue()


def reports() -> list[RenderableType]:
    """What `evaluate --details` and `datasets info` print."""
    data = kgcf.read("world")
    evaluation = evaluate(FrequencyScorer(data.test.observed), data, "test", model="frequency", limit=50)
    facts = describe(data, np.random.default_rng(0))
    headline = evaluation_table({"frequency": evaluation})
    return [headline, breakdown_tables(evaluation, data.relations), facts_tables(facts, 5)]


def test_reports_fit_and_keep_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for report in reports():
        shown = {}
        for width in (45, 200):
            monkeypatch.setenv("COLUMNS", str(width))
            monkeypatch.setattr(sys, "stdout", io.StringIO())
            Screen().print(report)
            written = sys.stdout
            assert isinstance(written, io.StringIO)
            shown[width] = written.getvalue()
            assert max(map(len, shown[width].splitlines())) <= width
        assert "No room for: " in shown[45]
        assert "No room for: " not in shown[200]
        narrow, wide = (set(re.findall(r"(?<!@)\b\d[\d,.%]*", shown[width])) for width in (45, 200))
        assert narrow <= wide


def test_a_list_through_a_real_pipe() -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "KGCF_TABLES")}
    command = [sys.executable, "-m", "kgcf", "datasets", "ls"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines[0] == [column.title for column in LISTED]
    assert {len(line) for line in lines} == {len(LISTED)}
    assert "inductive" in done.stderr
