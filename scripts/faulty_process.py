"""A fault in a child process: a warm parent forks, the child imports the faulty module and runs the tests."""

import ast
import importlib.abc
import importlib.util
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scripts.coverage_of_tests import Watcher
from scripts.mutations import mutate

ROOT = Path(__file__).resolve().parents[1]
# Tests that start processes.
LEFT_OUT = (
    "test_matplotlib_is_only_imported_to_draw",
    "test_a_killed_run_resumes_to_the_same_weights",
    "test_ctrl_c_saves_and_says_how_to_go_on",
    "test_two_processes_train_like_one",
)
ASLEEP = 1200.0  # seconds after which a child is given up
Outcome = dict[str, Any]  # killed, timeout or survived; the test that noticed; seconds


def imported_name(path: Path) -> str:
    """src/kgcf/a/b.py → kgcf.a.b."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def importers_of(target: str) -> set[str]:
    """The target and every kgcf module that imports it, directly or not; the package itself imports lazily."""
    needs = {imported_name(path): _imports(path) for path in (ROOT / "src" / "kgcf").rglob("*.py")}
    needs.pop("kgcf")
    found, before = {target}, 0
    while len(found) > before:
        before = len(found)
        found |= {name for name, wanted in needs.items() if wanted & found}
    return found


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


class Impostor(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the faulty module under the name of the true one."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        """Answer for one module only."""
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        """Run the faulty text."""
        exec(compile(self._tree, str(self._path), "exec"), module.__dict__)


class FirstFailure:
    """Remembers which test noticed, and ends the process where a test takes many times what it should."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.failed = ""
        self._seconds = seconds

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Set the clock: processor time, so that a busy machine makes no difference."""
        signal.setitimer(signal.ITIMER_PROF, 10 + 5 * self._seconds.get(nodeid, 10.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest for every phase of every test."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


def run_tests(tests: Sequence[str], folder: str, plugin: FirstFailure | Watcher) -> int:
    """pytest in this process, silent."""
    left_out = " and ".join(f"not {name}" for name in LEFT_OUT)
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "--basetemp", folder, "-m", "not slow and not benchmark"]
    return int(pytest.main([*quiet, "-k", left_out, f"--rootdir={ROOT}", *tests], plugins=[plugin]))


def forget(modules: Iterable[str]) -> None:
    """Drop modules, and all tests, so that they are imported afresh."""
    for name in [*modules, *(n for n in sys.modules if n == "tests" or n.startswith("tests."))]:
        sys.modules.pop(name, None)
        package, _, child = name.rpartition(".")
        if package in sys.modules and hasattr(sys.modules[package], child):
            delattr(sys.modules[package], child)


@dataclass(frozen=True)
class Trial:
    """The `number`-th fault of a file, and the tests that may notice it."""

    source: Path
    number: int
    tests: Mapping[str, float]  # and their seconds, in the order in which they are run


def try_fault(trial: Trial) -> Outcome:
    """Fork, let the child run the tests with the fault in place, and tell what became of it."""
    started = time.monotonic()
    if not trial.tests:
        return {"outcome": "survived", "test": "no test comes here", "seconds": 0.0}
    importers_of(imported_name(trial.source))  # remembered: the child need not read all files
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "note"
        child = os.fork()
        if child == 0:
            os._exit(_be_faulty(trial, Path(folder)))
        status = _wait(child)
        test = note.read_text() if note.exists() else ""
    return {"outcome": _judge(status), "test": test, "seconds": round(time.monotonic() - started, 1)}


def _judge(status: int | None) -> str:
    """What an exit status says; one of pytest's that speaks of no fault stops everything."""
    if status is None or os.WIFSIGNALED(status):
        return "timeout"
    code = os.WEXITSTATUS(status)
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit("pytest does not find the tests that it was told to run. Were they changed in the meantime?")
    return "survived" if code == 0 else "killed"


def _be_faulty(trial: Trial, folder: Path) -> int:
    """In the child: 0 where all tests pass."""
    os.setsid()
    space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (space + (4 << 30), space + (4 << 30)))
    silence()
    path, name = trial.source, imported_name(trial.source)
    tree = mutate(path.read_text(encoding="utf-8"), trial.number, vars(sys.modules[name]))
    forget(importers_of(name))
    sys.meta_path.insert(0, Impostor(name, path, tree))
    first = FirstFailure(trial.tests)
    try:
        code = run_tests([str(ROOT / test) for test in trial.tests], str(folder / "tests"), first)
    except BaseException:
        code = 1
    (folder / "note").write_text(first.failed)
    return code


def silence() -> None:
    """Send what the tests print to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _wait(child: int) -> int | None:
    """The exit status of a child; None where it had to be ended: it sleeps, so no processor time passes."""
    deadline = time.monotonic() + ASLEEP
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def warm_up(tests: Sequence[str], files: Iterable[Path]) -> Watcher:
    """Run all tests once without a fault, here, so that children find libraries and kernels loaded.

    Tells which tests run which lines of the files.
    """
    watcher = Watcher(files)
    with tempfile.TemporaryDirectory() as folder:
        if run_tests(tests, f"{folder}/tests", watcher) != 0:
            raise SystemExit(f"Without any fault, {watcher.failed or 'the tests'} fail. Repair them first.")
    return watcher
