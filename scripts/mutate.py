"""Put small faults into the wiring modules, one at a time, and see whether a test notices.

    python scripts/mutate.py --module run --sample 40 --seed 0
    python scripts/mutate.py --list | less

Nothing on disk changes: one warm process forks a child for every fault, the child imports the faulty module in place of
the true one and runs the module's tests. Tests that start processes of their own would not see the fault, so
they are left out. Results stay in runs/mutants.json; what was killed is not tried again while module and fault stay the same.
"""

import argparse
import ast
import hashlib
import importlib
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # this tree, whatever is installed
os.environ |= {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}  # OpenMP's threads do not survive a fork: a child would hang

import pytest  # noqa: E402
from scripts.mutations import mutate, mutations  # noqa: E402

# What is mutated, and the tests that should notice, likely ones first. Files below src/kgcf and below tests.
EVALUATION, PREDICTION = "wiring/test_evaluation_wiring.py", "wiring/test_prediction_wiring.py"
TRAINING, STAGES, LOOP = (f"wiring/test_{name}_wiring.py" for name in ("training", "stages", "loop"))
WHOLE = (EVALUATION, STAGES, TRAINING, "test_runs.py")
ANSWERS = (PREDICTION, "prediction", EVALUATION)
REASONS = (
    "explanation/test_explainer.py",
    "explanation/test_case.py",
    "wiring/test_explanation_wiring.py",
    "explanation",
)
TARGETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "pipeline": ("pipeline.py", WHOLE),
    "stages": ("stages.py", WHOLE),
    "validation": ("validation.py", WHOLE),
    "run": ("run.py", (EVALUATION, PREDICTION, STAGES, "wiring", "test_runs.py", "prediction/test_probabilities.py")),
    "runs": ("runs.py", ("test_runs.py", STAGES, EVALUATION)),
    "calibrating": ("calibrating.py", ("prediction/test_probabilities.py", STAGES, EVALUATION)),
    "prediction.answers": ("prediction/answers.py", ANSWERS),
    "prediction.best": ("prediction/best.py", ("prediction/test_best.py", *ANSWERS)),
    "prediction.completion": ("prediction/completion.py", ANSWERS),
    "prediction.observed": ("prediction/observed.py", ANSWERS),
    "prediction.outputs": ("prediction/outputs.py", ("prediction",)),
    "explanation.explainer": ("explanation/explainer.py", REASONS),
    "explanation.case": ("explanation/case.py", REASONS),
    "training.loop": ("training/loop.py", (LOOP, "training/test_loop.py", TRAINING)),
}
# Tests that start processes.
LEFT_OUT = (
    "test_matplotlib_is_only_imported_to_draw",
    "test_a_killed_run_resumes_to_the_same_weights",
    "test_ctrl_c_saves_and_says_how_to_go_on",
    "test_two_processes_train_like_one",
)
RESULTS = ROOT / "runs" / "mutants.json"
EQUIVALENT = Path(__file__).with_name("mutate_equivalent.toml")
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Mutant:
    """The `number`-th fault of a module."""

    module: str
    number: int
    line: int
    where: str
    what: str

    @property
    def name(self) -> str:
        """What it is known by in the results and among the equivalent ones: no line numbers, they move."""
        return f"{self.module}: {self.where}: {self.what}"


def source_of(module: str) -> Path:
    """The file of a target."""
    return ROOT / "src" / "kgcf" / TARGETS[module][0]


def tests_of(module: str) -> list[str]:
    """The test files of a target that exist, each once."""
    paths = [ROOT / "tests" / name for name in TARGETS[module][1]]
    return list(dict.fromkeys(str(path) for path in paths if path.exists()))


def mutants_of(module: str) -> list[Mutant]:
    """All faults of a target."""
    path = source_of(module)
    found = mutations(ast.parse(path.read_text(encoding="utf-8")), vars(importlib.import_module(imported_name(path))))
    return [Mutant(module, number, m.line, m.where, m.what) for number, m in enumerate(found)]


def imported_name(path: Path) -> str:
    """src/kgcf/a/b.py → kgcf.a.b."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


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
    """Remembers which test noticed."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest for every phase of every test."""
        if report.failed and not self.test:
            self.test = report.nodeid


def run_tests(tests: Sequence[str], folder: str, first: FirstFailure) -> int:
    """pytest in this process, silent."""
    left_out = " and ".join(f"not {name}" for name in LEFT_OUT)
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "--basetemp", folder, "-m", "not slow and not benchmark"]
    return int(pytest.main([*quiet, "-k", left_out, f"--rootdir={ROOT}", *tests], plugins=[first]))


def forget(modules: Iterable[str]) -> None:
    """Drop modules, and all tests, so that they are imported afresh."""
    for name in [*modules, *(n for n in sys.modules if n == "tests" or n.startswith("tests."))]:
        sys.modules.pop(name, None)
        package, _, child = name.rpartition(".")
        if package in sys.modules and hasattr(sys.modules[package], child):
            delattr(sys.modules[package], child)


def try_mutant(mutant: Mutant, seconds: float) -> Outcome:
    """Fork, let the child run the tests with the fault in place, and tell what became of it."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "note"
        child = os.fork()
        if child == 0:
            os._exit(_be_mutant(mutant, seconds, Path(folder)))
        status = _wait(child, 5 * seconds)
        test = note.read_text() if note.exists() else ""
    outcome = "timeout" if status is None or os.WIFSIGNALED(status) else "killed"
    if status is not None and os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        outcome = "survived"
    return {"outcome": outcome, "test": test, "line": mutant.line, "seconds": round(time.monotonic() - started, 1)}


def _be_mutant(mutant: Mutant, seconds: float, folder: Path) -> int:
    """In the child: 0 where all tests pass."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (space + (4 << 30), space + (4 << 30)))
    silence()
    path = source_of(mutant.module)
    name = imported_name(path)
    tree = mutate(path.read_text(encoding="utf-8"), mutant.number, vars(sys.modules[name]))
    forget(importers_of(name))
    sys.meta_path.insert(0, Impostor(name, path, tree))
    first = FirstFailure()
    try:
        code = run_tests(tests_of(mutant.module), str(folder / "tests"), first)
    except BaseException:
        code = 1
    (folder / "note").write_text(first.test)
    return code


def silence() -> None:
    """Send what the tests print to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _wait(child: int, seconds: float) -> int | None:
    """The exit status of a child; None where it had to be ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def warm_up(modules: Iterable[str]) -> float:
    """Run all tests once without a fault, here, so that children find libraries and kernels loaded.

    Returns the processor seconds that a fault may take: twice what all tests take, and some.
    """
    started = time.process_time()
    tests = list(dict.fromkeys(test for module in modules for test in tests_of(module)))
    with tempfile.TemporaryDirectory() as folder:
        first = FirstFailure()
        if run_tests(tests, f"{folder}/tests", first) != 0:
            raise SystemExit(f"Without any fault, {first.test} fails. Repair it first.")
    return 20 + 2 * (time.process_time() - started)


def digest(module: str) -> str:
    """What a surviving mutant depends on: the module and its tests."""
    files = [source_of(module)]
    for test in map(Path, tests_of(module)):
        files += sorted(test.rglob("*.py")) if test.is_dir() else [test]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def report(mutants: Sequence[Mutant], results: dict[str, Outcome], equivalent: dict[str, str]) -> None:
    """Survivors, then one line per module and one for all."""
    rows: dict[str, list[int]] = {}
    for mutant in mutants:
        outcome = (
            "equivalent" if mutant.name in equivalent else results.get(mutant.name, {}).get("outcome", "not tried")
        )
        for key in (mutant.module, "in all"):
            row = rows.setdefault(key, [0, 0, 0, 0, 0])
            row[("killed", "timeout", "survived", "equivalent", "not tried").index(outcome)] += 1
        if outcome == "survived":
            print(f"survived  {TARGETS[mutant.module][0]}:{mutant.line}  {mutant.where}: {mutant.what}")
    print(f"{'':24}{'killed':>8}{'timeout':>9}{'survived':>10}{'equivalent':>12}{'share':>8}")
    rows["in all"] = rows.pop("in all", [0, 0, 0, 0, 0])
    for name, (killed, late, survived, same, _) in rows.items():
        share = (killed + late) / max(killed + late + survived, 1)
        print(f"{name:24}{killed:>8}{late:>9}{survived:>10}{same:>12}{share:>8.1%}")


def main() -> None:
    """Choose, try, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", action="append", choices=TARGETS, help="only this module; may be repeated")
    parser.add_argument("--sample", type=int, help="so many faults, drawn at random; default: all")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing; a larger sample contains a smaller one")
    parser.add_argument("--list", action="store_true", help="only list the faults")
    parser.add_argument("--survivors", action="store_true", help="only what survived last time")
    arguments = parser.parse_args()
    modules = arguments.module or list(TARGETS)
    results: dict[str, Outcome] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    equivalent = {row["mutant"]: row["reason"] for row in tomllib.loads(EQUIVALENT.read_text())["equivalent"]}
    mutants = [mutant for module in modules for mutant in mutants_of(module)]
    random.Random(arguments.seed).shuffle(mutants)
    mutants = mutants[: arguments.sample]
    if arguments.survivors:
        mutants = [m for m in mutants if results.get(m.name, {}).get("outcome") == "survived"]
    mutants.sort(key=lambda m: (modules.index(m.module), m.line))
    if arguments.list:
        for m in mutants:
            print(f"{TARGETS[m.module][0]}:{m.line}  {m.where}: {m.what}" + ("  (equivalent)" * (m.name in equivalent)))
        return
    run_all([m for m in mutants if m.name not in equivalent], results)
    report(mutants, results, equivalent)


def run_all(mutants: Sequence[Mutant], results: dict[str, Outcome]) -> None:
    """Try what has no result yet, and write every result at once."""
    digests = {module: digest(module) for module in {m.module for m in mutants}}

    def is_done(mutant: Mutant) -> bool:
        old = results.get(mutant.name, {})
        return old.get("outcome") in ("killed", "timeout") or old.get("of") == digests[mutant.module]

    waiting = [m for m in mutants if not is_done(m)]
    if not waiting:
        return
    seconds = warm_up(sorted({m.module for m in waiting}))
    RESULTS.parent.mkdir(exist_ok=True)
    for place, mutant in enumerate(waiting):
        results[mutant.name] = try_mutant(mutant, seconds) | {"of": digests[mutant.module]}
        RESULTS.write_text(json.dumps(results, indent=1))
        outcome = results[mutant.name]
        print(
            f"{place + 1}/{len(waiting)} {outcome['outcome']:9} {outcome['seconds']:5.1f} s  {mutant.name}", flush=True
        )


if __name__ == "__main__":
    main()
