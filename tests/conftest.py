"""Benchmark tests run where the benchmark files are; elsewhere they are skipped, counted, or fail on demand."""

import itertools
import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from kgcf.data import registry
from kgcf.data.locations import cache_folder

settings.register_profile("kgcf", deadline=None, derandomize=True)
settings.load_profile("kgcf")

REQUIRED = os.environ.get("KGCF_REQUIRE_BENCHMARKS") == "1"


_numbers = itertools.count()
_scratch: list[tempfile.TemporaryDirectory[str]] = []


def pytest_configure() -> None:
    """Let nothing write into the user's cache; benchmark files that are kept there are still read.

    A shell that starts us in its background has us ignore Ctrl-C, and so would all that tests start and interrupt.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if (kept := cache_folder() / "data").is_dir():
        os.environ.setdefault("KGCF_DATA", str(kept))
    scratch = tempfile.TemporaryDirectory(prefix="kgcf-test-cache-", ignore_cleanup_errors=True)
    _scratch.append(scratch)
    os.environ["KGCF_CACHE"] = str(Path(scratch.name) / "session")


def pytest_unconfigure() -> None:
    """Remove the caches of the tests."""
    while _scratch:
        _scratch.pop().cleanup()


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a cache of its own, empty at its beginning: none depends on what another computed."""
    monkeypatch.setenv("KGCF_CACHE", str(Path(_scratch[0].name) / str(next(_numbers))))


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Skip tests marked `benchmark` when their files are not at hand."""
    if REQUIRED or registry.at_hand():
        return
    reason = "benchmark files not at hand: set KGCF_DATA to the folder that has them"
    for item in items:
        if item.get_closest_marker("benchmark"):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many benchmark tests were skipped, so that nobody mistakes a skip for a pass."""
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if "benchmark files" in str(r.longrepr)]
    terminalreporter.write_line(f"benchmark tests skipped for want of files: {len(skipped)}")


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file below the test's own folder and return its path."""

    def writing(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return writing
