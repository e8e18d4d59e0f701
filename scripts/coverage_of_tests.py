"""Which test runs which lines of the modules under examination, and how long it takes: so that few tests are run."""

import sys
import threading
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

Lines = set[tuple[str, int]]  # file and line


@dataclass
class Visited:
    """What a test or a fixture ran, and its seconds."""

    lines: Lines = field(default_factory=set)
    seconds: float = 0.0


class Watcher:
    """A pytest plugin; a fixture that tests share counts for every test that uses it."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = {str(file) for file in files}
        self._now = Visited()
        self._fixtures: dict[Any, Visited] = {}
        self.tests: dict[str, Visited] = {}
        self.failed = ""

    def covering(self, file: Path, first: int, last: int) -> list[str]:
        """The tests that run any of these lines, quick ones first."""
        wanted = {(str(file), line) for line in range(first, last + 1)}
        found = [(seen.seconds, test) for test, seen in self.tests.items() if seen.lines & wanted]
        return [test for _, test in sorted(found)]

    def quick_first(self, files: Iterable[str]) -> list[str]:
        """All tests of some files or folders."""
        places = tuple(files)
        found = [(seen.seconds, test) for test, seen in self.tests.items() if _below(test, places)]
        return [test for _, test in sorted(found)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Watch one test."""
        own, started = Visited(), time.process_time()
        self._now = own
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            result = yield
        finally:
            sys.settrace(None)
            threading.settrace(None)
        own.seconds += time.process_time() - started
        definitions = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009
        for shared in (self._fixtures[d] for ds in definitions for d in ds if d in self._fixtures):
            own.lines |= shared.lines
            own.seconds += shared.seconds
        self.tests[item.nodeid] = own
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:  # noqa: ANN401
        """Watch the making of a fixture apart from the test that happens to need it first."""
        before, own, started = self._now, Visited(), time.process_time()
        self._now = own
        try:
            return (yield)
        finally:
            own.seconds = time.process_time() - started
            before.seconds -= own.seconds
            self._now = before
            self._fixtures[fixturedef] = own

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first failure."""
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ANN401
        return self._step if frame.f_code.co_filename in self._files else None

    def _step(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ANN401
        if event == "line":
            self._now.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._step


def _below(test: str, places: tuple[str, ...]) -> bool:
    file = test.partition("::")[0]
    return any(file == place or file.startswith(place.rstrip("/") + "/") for place in places)
