"""Tables of data: tab-separated and in full when piped, and within the width of a terminal, however narrow."""

import io
import itertools
import os
import subprocess
import sys

import pytest
from rich.text import Text

from kgcf.cli.answer_tables import answer_table, show_answers
from kgcf.cli.datasets import LISTED
from kgcf.cli.tables import Column, DataTable, show_table
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


def test_a_list_through_a_real_pipe() -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "KGCF_TABLES")}
    command = [sys.executable, "-m", "kgcf", "datasets", "ls"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines[0] == [column.title for column in LISTED]
    assert {len(line) for line in lines} == {len(LISTED)}
    assert "inductive" in done.stderr
