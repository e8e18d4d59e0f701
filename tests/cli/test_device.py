"""--device as a user types it."""

import json
from pathlib import Path

import pytest
import torch

from kgcf.cli.evaluate import evaluate_command
from kgcf.errors import SettingsError
from tests.cli.test_bad_input import kgcf
from tests.training.tiny import TINY, dataset, write_folder

QUICK = [p for c in (*TINY, "objective.negatives=4", "training.threads=1", "training.epochs=1") for p in ("--set", c)]
COMMANDS = [
    ("train", "nothing"),
    ("resume", "nothing"),
    ("evaluate", "nothing"),
    ("predict", "nothing"),
    ("complete", "nothing"),
    ("explain", "nothing", "a", "r", "b"),
    ("tune", "nothing"),
]


@pytest.mark.skipif(torch.cuda.is_available(), reason="cuda is there")
@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_a_missing_device_is_a_sentence(command: tuple[str, ...]) -> None:
    done = kgcf(*command, "--device", "cuda")
    assert done.returncode == 1
    told = " ".join(done.stderr.split())
    assert told.startswith("Error: The device 'cuda' is not available: torch")
    assert "Available here: cpu. Use the CPU, which is the default" in told
    assert "Traceback" not in told


def test_the_cpu_is_a_device(tmp_path: Path) -> None:
    data, run = write_folder(dataset(), tmp_path / "tiny"), tmp_path / "run"
    chosen = ("--device", "cpu")
    done = kgcf("train", data, "--preset", "nbfnet", "--output", run, *QUICK, *chosen)
    assert done.returncode == 0, done.stderr
    assert "device" not in (run / "config.toml").read_text()
    assert json.loads((run / "results.json").read_text())["protocol"]["device"] == "cpu"
    for command in (("predict", run, "--head", "e1", "--relation", "parent"), ("explain", run, "e1", "parent", "e9")):
        done = kgcf(*command, *chosen)
        assert done.returncode == 0, done.stderr


def test_an_unknown_device_is_a_sentence() -> None:
    done = kgcf("evaluate", "world", "--device", "gpu")
    assert done.returncode == 1
    assert "There is no device called 'gpu': devices are cpu, cuda and cuda:N." in " ".join(done.stderr.split())


def test_counting_has_no_device() -> None:
    with pytest.raises(SettingsError, match="--device goes with a run, and world is none"):
        evaluate_command("world", device="cuda")
