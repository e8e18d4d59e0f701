"""`kgcf compare`: what it prints is what the run folders say."""

import json
from pathlib import Path

import numpy as np
import pytest

from kgcf.comparison import read_record
from kgcf.errors import SettingsError
from kgcf.learning_curves import draw_learning, learning_figure
from kgcf.pipeline import fit
from tests.cli.test_bad_input import kgcf
from tests.training.tiny import TINY, dataset

CHANGES = (*TINY, "objective.negatives=4", "training.threads=1")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("compared")
    paths = []
    for preset in ("nbfnet", "default"):
        run = fit(dataset(), folder / preset, preset=preset, changes=CHANGES)
        history = run.folder.facts()["history"]
        assert isinstance(history, dict)
        for entry in history["epochs"]:
            run.folder.log(entry)
        paths.append(folder / preset)
    fit(dataset(), folder / "tested", preset="nbfnet", changes=CHANGES).evaluate("test", save=True)
    return [*paths, folder / "tested"]


def test_records_are_what_the_folders_say(runs: list[Path]) -> None:
    first = read_record(runs[0])
    lines = [json.loads(line) for line in (runs[0] / "log.jsonl").read_text().splitlines()]
    assert first.validation == [(line["epoch"], line["validation_mrr"]) for line in lines]
    assert first.best == max(first.validation, key=lambda point: point[1])
    assert (first.preset, first.dataset, first.test) == ("nbfnet", "tiny", {})
    tested = read_record(runs[2])
    assert tested.test["mrr"] == json.loads((runs[2] / "results.json").read_text())["mrr"]
    assert tested.best is None, "nobody listened to this training, so it has no log"


def test_the_command_prints_and_draws(runs: list[Path], tmp_path: Path) -> None:
    done = kgcf("compare", *runs[:2], "--plot", tmp_path / "curves.svg")
    assert done.returncode == 0, done.stderr
    for path in runs[:2]:
        best = read_record(path).best
        assert best is not None
        assert f"{best[1]:.4f}" in done.stdout
    assert "<svg" in (tmp_path / "curves.svg").read_text()
    wrong = kgcf("compare", *runs, "--plot", tmp_path / "curves.gif")
    assert wrong.returncode == 1
    assert "end the name in .png or .svg" in " ".join(wrong.stderr.split())


def test_curves_are_the_records(runs: list[Path], tmp_path: Path) -> None:
    records = [read_record(path) for path in runs[:2]]
    axes = learning_figure(records).axes[0]
    points = [np.stack([np.asarray(line.get_xdata()), np.asarray(line.get_ydata())], axis=1) for line in axes.lines]
    curves = [line for line in points if len(line) > 1]
    for record, curve in zip(records, curves, strict=True):
        assert np.array_equal(curve, np.array(record.validation))
    with pytest.raises(SettingsError, match="tested: no epoch was validated"):
        draw_learning([read_record(runs[2])], tmp_path / "none.png")
    assert not list(tmp_path.iterdir())


def test_a_resumed_run_counts_an_epoch_once(runs: list[Path]) -> None:
    log = runs[0] / "log.jsonl"
    before = read_record(runs[0])
    log.write_text(log.read_text() + log.read_text().splitlines()[-1] + "\n")
    assert read_record(runs[0]).epochs == before.epochs
