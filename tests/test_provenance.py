"""A result says which commit made it."""

import subprocess
from pathlib import Path

import pytest

from kgcf.machine import provenance as module
from kgcf.machine.provenance import provenance
from kgcf.reproduction import work
from kgcf.reproduction.cells import Cell
from kgcf.reproduction.store import Store

ROOT = Path(__file__).parent.parent
CHECKOUT = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")


@CHECKOUT
def test_the_commit_of_a_checkout_is_named() -> None:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    head = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert str(provenance()["commit"]).removesuffix("+changes") == head


@CHECKOUT
def test_the_commit_is_that_of_the_code_that_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """People commit while a target computes for hours; its cells are not made by what came later."""
    heads = iter(["first", "", "second", ""])
    monkeypatch.setattr(module, "_git", lambda root, *arguments: next(heads))
    found = list[str]()

    def compute(cell: Cell, store: Store, say: object) -> dict[str, object]:
        found.append(str(provenance()["commit"]))
        return {}

    monkeypatch.setattr(work, "compute", compute)
    module.running_commit.cache_clear()
    try:
        work.compute_cells(Store(tmp_path), [], found.append)
        assert next(heads) == "second"  # seen before the first cell
        work.compute_cells(Store(tmp_path), [Cell("distribution", "world", "relations", seed=s) for s in (0, 1)], print)
    finally:
        module.running_commit.cache_clear()
    assert found == ["first", "first"]


def test_the_machine_is_described_without_names() -> None:
    facts = provenance()
    assert {"kgcf", "date", "python", "system", "processor", "cores", "memory_gib", "torch", "numpy", "numba"} <= set(
        facts
    )
    assert "host" not in facts
