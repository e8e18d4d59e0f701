"""Threads that leave the cores to others: OpenMP waits asleep, and torch keeps to one core while we train."""

import os
import subprocess
import sys

import pytest
import torch

from kgcf.training.loop import Listener, Trainer
from kgcf.training.settings import TrainingSettings
from tests.training.tiny import dataset, model, step_context


@pytest.mark.parametrize(("given", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_openmp_sleeps_unless_somebody_says_otherwise(given: str | None, expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if given is not None:
        environment["OMP_WAIT_POLICY"] = given
    code = "import sys, kgcf, os; assert 'torch' not in sys.modules; print(os.environ['OMP_WAIT_POLICY'])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


class Counting(Listener):
    """Notes how many threads torch may use at every step."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        self.threads.append(torch.get_num_threads())


def test_torch_keeps_to_one_core_between_the_parts_of_a_training() -> None:
    listener, before = Counting(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        settings = TrainingSettings(epochs=1, batch_size=16, threads=2)
        Trainer(
            step_context(model(3, treatment=False).float(), dataset().graph), settings, None, listener=listener
        ).run()
        assert listener.threads
        assert set(listener.threads) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
