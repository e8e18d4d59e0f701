"""Whole runs through the real command line: the same twice, resumed after kill -9, divided among processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from kgcf.errors import KgcfError, TrainingError
from kgcf.storage import map_arrays
from kgcf.training.loop import Trainer
from kgcf.training.settings import TrainingSettings
from tests.training.tiny import TINY, dataset, model, step_context, write_folder

QUICK = [
    part
    for change in (*TINY, "objective.negatives=4", "space.walks=2", "training.threads=1")
    for part in ("--set", change)
]


def kgcf(*arguments: str | Path, launcher: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *(launcher or ("kgcf",)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def weights(run: Path, file: str = "model.safetensors") -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    return {name: np.array(array) for name, array in map_arrays(run / file).items()}


def same(first: Path, second: Path) -> bool:
    one, two = weights(first), weights(second)
    return set(one) == set(two) and all((one[name] == two[name]).all() for name in one)


def test_a_killed_run_resumes_to_the_same_weights(tmp_path: Path) -> None:
    data = write_folder(dataset(), tmp_path / "data")
    longer = [*QUICK, "--set", "training.epochs=6", "--set", "training.checkpoint_seconds=0"]
    done = kgcf("train", data, "--output", tmp_path / "whole", *longer)
    assert done.returncode == 0, done.stderr
    killed = tmp_path / "killed"
    command = [sys.executable, "-m", "kgcf", "train", str(data), "--output", str(killed), *longer]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (killed / "checkpoint.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (killed / "checkpoint.safetensors").exists()
    refused = kgcf("train", data, "--output", killed, *longer)
    assert refused.returncode == 1
    assert "exists already. Nothing was changed" in " ".join(refused.stderr.split())
    resumed = kgcf("resume", killed)
    assert resumed.returncode == 0, resumed.stderr
    assert same(tmp_path / "whole", killed)
    results = [json.loads((tmp_path / run / "results.json").read_text()) for run in ("whole", "killed")]
    assert results[0]["mrr"] == results[1]["mrr"]


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    data = write_folder(dataset(), tmp_path / "data")
    run = tmp_path / "run"
    command = [sys.executable, "-m", "kgcf", "train", str(data), "--output", str(run), *QUICK]
    command += ["--set", "training.epochs=400", "--set", "training.checkpoint_seconds=0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (run / "checkpoint.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"kgcf resume {run}" in " ".join(told.split())
    unfinished = kgcf("predict", run, "--head", "e1", "--relation", "parent")
    assert unfinished.returncode == 1
    assert "has no trained model yet" in " ".join(unfinished.stderr.split())


def test_two_processes_train_like_one(tmp_path: Path) -> None:
    data = write_folder(dataset(), tmp_path / "data")
    alone = kgcf("train", data, "--output", tmp_path / "alone", *QUICK)
    assert alone.returncode == 0, alone.stderr
    launcher = (
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        str(20_000 + os.getpid() % 20_000),
        "-m",
        "kgcf",
    )
    both = kgcf("train", data, "--output", tmp_path / "both", *QUICK, launcher=launcher)
    assert both.returncode == 0, both.stderr
    one, two = (
        weights(tmp_path / "alone", "checkpoint.safetensors"),
        weights(tmp_path / "both", "checkpoint.safetensors"),
    )
    assert set(one) == set(two)
    for name in one:
        scale = float(np.abs(one[name]).max())
        assert np.allclose(one[name], two[name], rtol=1e-3, atol=1e-4 * scale + 1e-9), name
    facts = [json.loads((tmp_path / run / "history.json").read_text()) for run in ("alone", "both")]
    logged = (tmp_path / "both" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in logged] == facts[1]["epochs"]  # written once, by the leader
    for first, second in zip(facts[0]["epochs"], facts[1]["epochs"], strict=True):
        assert first["queries"] == second["queries"]
        assert first["factual"] == pytest.approx(second["factual"], rel=1e-4)


def test_training_is_the_same_twice_and_learns(tmp_path: Path) -> None:
    data = dataset()
    histories = []
    for _ in range(2):
        net = model(3, treatment=False).float()
        settings = TrainingSettings(epochs=8, batch_size=16, threads=2, learning_rate=0.02)
        trainer = Trainer(step_context(net, data.graph), settings, None, checkpoint=tmp_path / "c.safetensors")
        histories.append(trainer.run().history)
    assert [e["factual"] for e in histories[0]] == [e["factual"] for e in histories[1]]
    assert histories[0][-1]["factual"] < histories[0][0]["factual"] - 0.08


def test_early_stopping_keeps_the_best_weights() -> None:
    data, scores = dataset(), iter([0.3, 0.5, 0.4, 0.45, 0.9])
    net = model(3).float()
    seen: list[dict[str, torch.Tensor]] = []

    def validate() -> float:
        seen.append({name: p.detach().clone() for name, p in net.named_parameters()})
        return next(scores)

    settings = TrainingSettings(epochs=5, batch_size=32, threads=1, patience=2)
    progress = Trainer(step_context(net, data.graph), settings, validate).run()
    assert (progress.best, progress.best_epoch, len(progress.history)) == (0.5, 2, 4)
    assert all(torch.equal(p, seen[1][name]) for name, p in net.named_parameters())


def test_nan_stops_and_names_the_term() -> None:
    data, net = dataset(), model(3).float()
    with torch.no_grad():
        next(net.parameters()).fill_(float("nan"))
    with pytest.raises(TrainingError, match="The factual loss became nan in epoch 1, step 1"):
        Trainer(step_context(net, data.graph), TrainingSettings(epochs=1, threads=1), None).run()


@pytest.mark.parametrize(("joined", "size"), [(1, 16), (2, 8)])
def test_accumulated_batches_are_one_larger_batch(joined: int, size: int) -> None:
    data, net = dataset(), model(3)
    settings = TrainingSettings(epochs=1, batch_size=size, accumulate=joined, batches_per_epoch=3, threads=1)
    progress = Trainer(step_context(net, data.graph), settings, None).run()
    assert progress.steps == 3
    assert progress.history[0]["queries"] == 48


def test_a_budget_ends_the_run() -> None:
    data, net = dataset(), model(3)
    settings = TrainingSettings(epochs=50, batch_size=10, budget=45, threads=1)
    progress = Trainer(step_context(net, data.graph), settings, None).run()
    assert progress.steps == 5
    assert progress.finished


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    data, path = dataset(), tmp_path / "c.safetensors"
    settings = TrainingSettings(epochs=1, batch_size=32, threads=1)
    Trainer(step_context(model(3), data.graph), settings, None, checkpoint=path, key="one").run()
    other = Trainer(step_context(model(3), data.graph), settings, None, checkpoint=path, key="two")
    with pytest.raises(KgcfError, match="another configuration or other data"):
        other.resume()


def test_training_needs_no_gradients_left_on_by_others() -> None:
    """An interrupt at a bad moment of an earlier run may leave them off in a notebook."""
    with torch.no_grad():
        settings = TrainingSettings(epochs=1, batch_size=16, threads=1)
        progress = Trainer(step_context(model(3, treatment=False).float(), dataset().graph), settings, None).run()
        assert progress.finished
        assert not torch.is_grad_enabled()
