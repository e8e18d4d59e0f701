"""docs/notebook.ipynb runs from top to bottom, and what is stored in it is what it shows today."""

import re
from pathlib import Path
from typing import Any

import pytest
from scripts.notebook import code_cells, read_notebook, run_cells


def kinds(outputs: list[dict[str, Any]]) -> list[tuple[str, list[str], list[str]]]:
    """What outputs are: printed or shown, as text or HTML, and the titles of tables; not their numbers."""
    return [
        (found["output_type"], sorted(found.get("data", {})), re.findall("<th[ >].*?</th>", _html(found)))
        for found in outputs
    ]


def _html(output: dict[str, Any]) -> str:
    table = "".join(output.get("data", {}).get("text/html", []))
    return table.split("</thead>")[0]


def test_the_notebook_runs_and_its_outputs_are_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = read_notebook()
    found = list(run_cells(notebook))
    for cell, outputs in zip(code_cells(notebook), found, strict=True):
        assert kinds(outputs) == kinds(cell["outputs"]), "".join(cell["source"])
    answers, why = found[3][0]["data"], "".join(found[7][0]["text"])
    assert "rank  head      relation" in "".join(answers["text/plain"])
    assert "person 9 —lives in→" in why
    assert re.search("is in|works for", why)


def test_a_change_of_what_is_shown_makes_stored_outputs_stale() -> None:
    shown = {
        "output_type": "execute_result",
        "data": {"text/plain": ["x"], "text/html": ["<thead><th>rank</th></thead>"]},
    }
    renamed = {**shown, "data": {"text/plain": ["y"], "text/html": ["<thead><th>place</th></thead>"]}}
    assert kinds([shown]) != kinds([renamed])
    assert kinds([shown]) != kinds([{**shown, "data": {"text/plain": ["x"]}}])
    assert kinds([shown]) != kinds([])
