"""The command line: three rows, --no-memory, what explain and compare say, kgcf blend."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kgcf.cli import app
from kgcf.errors import SettingsError
from kgcf.runs.folder import RunFolder
from tests.memory.remembering import CHANGES, Remembering, write_town


def run(*words: str | Path) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def folder(town: Remembering) -> Path:
    return town.both.folder.path


def test_evaluate_prints_three_rows(folder: Path) -> None:
    told = run("evaluate", folder, "--split", "valid")
    assert [name in told for name in ("paths alone", "memory alone", "both")] == [True, True, True]
    values = json.loads(run("evaluate", folder, "--split", "valid", "--json"))
    assert set(values["parts"]) == {"paths alone", "memory alone"}
    assert values["parts"]["paths alone"]["mrr"] > 0


def test_compare_and_explain_say_what_memory_does(folder: Path) -> None:
    assert "rank 4" in run("compare", folder)
    told = run("explain", folder, "e3", "friend", "e9")
    assert "emory" in told  # its part of the logit, or why it is silent


def test_no_memory_trains_paths_alone(tmp_path: Path) -> None:
    data = write_town(tmp_path / "data")
    others = (change for change in CHANGES if not change.startswith("memory.enabled="))
    changes = [word for change in others for word in ("--set", change)]
    told = run("train", data, "--output", tmp_path / "run", *changes, "--no-memory")
    assert RunFolder(tmp_path / "run").settings().memory.enabled == "off"
    assert not (tmp_path / "run" / "blend.json").exists()
    assert "memory alone" not in told


def test_no_memory_and_a_setting_that_says_otherwise_are_refused(tmp_path: Path) -> None:
    asked = ("train", tmp_path / "data", "--no-memory", "--set", "memory.enabled=on")
    with pytest.raises(SettingsError, match="say the same setting twice"):
        CliRunner().invoke(app, [str(word) for word in asked], catch_exceptions=False)


def test_blend_prints_the_runs_and_makes_one(folder: Path, tmp_path: Path) -> None:
    told = run("blend", folder, folder, "--output", tmp_path / "both", "--limit", "5")
    assert "run (1)" in told
    assert "run (2)" in told
    assert "by the best run alone" in " ".join(told.split())
    assert (tmp_path / "both" / "companions" / "1" / "model.safetensors").is_file()
    assert "run (2)" in run("evaluate", tmp_path / "both", "--split", "valid")
    assert "(blend of run (1), run (2))" in run("compare", tmp_path / "both")
