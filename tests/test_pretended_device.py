"""The checks on a pretended device, in a process of their own: torch learns of a device once and for good."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.pretended import can_pretend

CHECKS = Path(__file__).with_name("pretended_checks.py")


@pytest.mark.skipif(not can_pretend(), reason=f"torch {torch.__version__} cannot be told of devices in Python")
def test_everything_runs_on_a_pretended_device() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(CHECKS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKS.parents[1], check=False)
    assert done.returncode == 0, done.stdout
