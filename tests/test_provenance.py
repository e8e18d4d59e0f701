"""A result says which commit made it."""

import subprocess
from pathlib import Path

import pytest

from kgcf.machine.provenance import provenance

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_the_commit_of_a_checkout_is_named() -> None:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    head = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert str(provenance()["commit"]).removesuffix("+changes") == head


def test_the_machine_is_described_without_names() -> None:
    facts = provenance()
    assert {"kgcf", "date", "python", "system", "processor", "cores", "memory_gib", "torch", "numpy", "numba"} <= set(
        facts
    )
    assert "host" not in facts
