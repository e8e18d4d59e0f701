"""`kgcf compare`: what it prints is what the run folders say."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kgcf.config import configure
from kgcf.errors import SettingsError, StorageError
from kgcf.pipeline import fit
from kgcf.runs.comparison import read_record
from kgcf.runs.folder import RunFolder
from kgcf.runs.plots import draw_learning, learning_figure
from tests.cli.test_bad_input import kgcf
from tests.training.tiny import TINY, dataset

CHANGES = (*TINY, "objective.negatives=4", "training.threads=1")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("compared")
    fit(dataset(), folder / "nbfnet", preset="nbfnet", changes=CHANGES)
    fit(dataset(), folder / "default", changes=CHANGES).evaluate("test", save=True)
    return [folder / "nbfnet", folder / "default"]


def test_records_are_what_the_folders_say(runs: list[Path]) -> None:
    first, second = map(read_record, runs)
    history = json.loads((runs[0] / "history.json").read_text())
    assert first.validation == [(entry["epoch"], entry["validation_mrr"]) for entry in history["epochs"]]
    assert len(first.validation) == 2
    assert first.best == (history["best_epoch"], history["best_validation_mrr"])
    assert (first.preset, first.dataset, first.test) == ("nbfnet", "tiny", {})
    assert second.test["mrr"] == json.loads((runs[1] / "results.json").read_text())["mrr"]


def test_the_command_prints_and_draws(runs: list[Path], tmp_path: Path) -> None:
    done = kgcf("compare", *runs, "--plot", tmp_path / "curves.svg")
    assert done.returncode == 0, done.stderr
    for path in runs:
        best = read_record(path).best
        assert best is not None
        assert f"{best[1]:.4f}" in done.stdout
    assert "<svg" in (tmp_path / "curves.svg").read_text()
    wrong = kgcf("compare", *runs, "--plot", tmp_path / "curves.gif")
    assert wrong.returncode == 1
    assert "end the name in .png or .svg" in " ".join(wrong.stderr.split())


def test_curves_are_the_records(runs: list[Path], tmp_path: Path) -> None:
    records = [read_record(path) for path in runs]
    by_epoch, by_time = (
        [
            np.array([line.get_xdata(), line.get_ydata()]).T
            for line in axes.lines
            if len(np.asarray(line.get_xdata())) > 1
        ]
        for axes in learning_figure(records).axes
    )
    for record, curve, timed in zip(records, by_epoch, by_time, strict=True):
        assert np.array_equal(curve, np.array(record.validation))
        assert np.array_equal(timed[:, 0], record.validation_minutes)
        assert timed[-1, 0] == pytest.approx(record.minutes)
        assert np.array_equal(timed[:, 1], curve[:, 1])
    with pytest.raises(SettingsError, match="nbfnet: no epoch was validated"):
        draw_learning([replace(records[0], epochs=[])], tmp_path / "none.png")
    assert not list(tmp_path.iterdir())


def test_an_unfinished_run_shows_its_log_with_every_epoch_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "stopped")
    folder.create(dataset(), configure(changes=CHANGES), "default")
    assert read_record(folder.path).epochs == []
    for epoch, score in ((1, 0.2), (2, 0.3), (2, 0.4)):  # stopped in epoch 2 after it was logged, and resumed
        folder.log({"epoch": epoch, "seconds": 1.0, "validation_mrr": score})
    with folder.file("log.jsonl").open("a") as file:
        file.write('{"epoch": 3, "sec')  # killed while it wrote
    assert read_record(folder.path).validation == [(1, 0.2), (2, 0.4)]
    folder.file("results.json").write_text("{")
    with pytest.raises(StorageError, match="is damaged"):
        read_record(folder.path)
