"""Where nothing can be written, every command says so in a sentence, and before the work where it can know."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kgcf.cli import app
from kgcf.errors import KgcfError, StorageError
from kgcf.runs.folder import RunFolder
from kgcf.runs.run import Run

ROOT = Path(__file__).parent.parent.parent


def test_full_and_read_only_disks_are_sentences(tmp_path: Path) -> None:
    execution = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-m", "tests.unwritable", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=execution, timeout=600)
    if done.returncode == 77:
        pytest.skip("mounting a small disk is not allowed here")
    assert done.returncode == 0, done.stderr
    found: dict[str, list[dict[str, object]]] = json.loads(done.stdout)
    reasons = {
        "full": "No space left",
        "nearly full": "No space left|is full|could not be kept",
        "read-only": "Read-only",
    }
    for name, wanted in reasons.items():
        assert len(found[name]) >= 15
        for one in found[name]:
            text = " ".join(str(one["said"]).split())
            assert one["code"] == 1, one
            assert any(part in text for part in wanted.split("|")), one
            assert "Error: " in text, one
        if name == "read-only":  # a run that may only be read can be evaluated
            assert found["a run, read-only"][0]["code"] == 0
            assert "note: the results are shown, not kept" in str(found["a run, read-only"][0]["said"])
        assert all(one["code"] in (0, 1) for one in found[f"a run, {name}"])
    assert found["a run, full"][0]["code"] == 0


def working(*_: object, **__: object) -> None:
    raise AssertionError("it began to work before it knew that it cannot write")


@pytest.mark.parametrize(
    "command",
    [
        ["complete", "RUN", "--output", "PLACE.tsv"],
        ["explain", "RUN", "a", "r", "b", "--html", "PLACE.html"],
        ["explain", "RUN", "a", "r", "b", "--png", "PLACE.png"],
        ["explain", "RUN", "a", "r", "b", "--png", "picture.jpg"],
        ["evaluate", "RUN", "--output", "PLACE.json"],
        ["counterfactuals", "world", "--output", "PLACE"],
        ["compare", "RUN", "--plot", "PLACE.svg"],
        ["datasets", "info", "world", "--plot", "PLACE.png"],
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(Run, "open", working)
    for module in ("counterfactuals", "evaluate", "datasets"):
        monkeypatch.setattr(sys.modules[f"kgcf.cli.{module}"], "open_data", working)
    monkeypatch.setattr("kgcf.runs.comparison.read_record", working)
    asked = [part.replace("PLACE", str(tmp_path / "file" / "below")) for part in command]
    done = CliRunner().invoke(app, asked)
    assert isinstance(done.exception, KgcfError), done.exception
    assert "Could not write" in str(done.exception) or "does not say which picture" in str(done.exception)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_results_are_not_computed_where_they_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[str, str], Path]
) -> None:
    monkeypatch.setattr("kgcf.runs.run.evaluate", working)
    run = Run(RunFolder(write("file", "not a folder")), None, None, None)  # type: ignore[arg-type]
    with pytest.raises(StorageError, match=r"Could not write .*results.json"):
        run.evaluate(save=True)


def test_standard_output_on_a_full_disk_is_a_sentence() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    with full.open("w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "kgcf", "--version"], stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr
