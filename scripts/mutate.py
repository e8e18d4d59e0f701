"""Put small faults into the wiring modules, one at a time, and see whether a test notices.

    python scripts/mutate.py --module run --sample 40 --seed 0
    python scripts/mutate.py --list | less

Nothing on disk changes: one warm process forks a child for every fault, the child imports the faulty module in place of
the true one and runs the module's tests. Tests that start processes of their own would not see the fault, so they are
left out. Results are appended to runs/mutants.jsonl; what was killed is not tried again while the fault is the same.
"""

import argparse
import ast
import hashlib
import importlib
import json
import os
import random
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # this tree, whatever is installed
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # threads of OpenMP in the parent hang its children

from scripts.faulty_process import Outcome, Trial, imported_name, try_fault, warm_up  # noqa: E402
from scripts.mutations import mutations  # noqa: E402

# What is mutated, and the tests that should notice, likely ones first. Files below src/kgcf and below tests.
EVALUATION, PREDICTION = "wiring/test_evaluation_wiring.py", "wiring/test_prediction_wiring.py"
TRAINING, STAGES, LOOP = (f"wiring/test_{name}_wiring.py" for name in ("training", "stages", "loop"))
FOLDER, UNSEEN = "runs/test_folder.py", "prediction/test_nothing_of_test.py"
WHOLE = (EVALUATION, STAGES, TRAINING, FOLDER)
ANSWERS = (PREDICTION, "prediction", EVALUATION)
LINKS = ("prediction/test_proposals.py", "prediction/test_completion.py", UNSEEN, PREDICTION)
REASONS = (
    "explanation/test_explainer.py",
    "explanation/test_case.py",
    "wiring/test_explanation_wiring.py",
    "explanation",
)
TARGETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "pipeline": ("pipeline.py", WHOLE),
    "runs.stages": ("runs/stages.py", WHOLE),
    "runs.validation": ("runs/validation.py", ("wiring/test_validation_wiring.py", UNSEEN, *WHOLE)),
    "runs.run": (
        "runs/run.py",
        (EVALUATION, PREDICTION, STAGES, *REASONS[2:3], FOLDER, "prediction/test_probabilities.py"),
    ),
    "runs.folder": ("runs/folder.py", (FOLDER, STAGES, EVALUATION, "test_stops.py")),
    "runs.settling": ("runs/settling.py", ("training/test_depth.py", FOLDER)),
    "runs.time_budget": ("runs/time_budget.py", ("runs/test_time_budget.py",)),
    "training.choice": ("training/choice.py", ("training/test_choice.py",)),
    "calibration.calibrate": (
        "prediction/calibration/calibrate.py",
        ("prediction/test_probabilities.py", UNSEEN, STAGES, EVALUATION),
    ),
    "calibration.record": ("prediction/calibration/record.py", ("prediction/test_probabilities.py", STAGES)),
    "calibration.sampling": (
        "prediction/calibration/sampling.py",
        ("prediction/calibration/test_sampling.py", UNSEEN, *ANSWERS),
    ),
    "prediction.answers": ("prediction/answers.py", ANSWERS),
    "prediction.completion": ("prediction/completion.py", LINKS),
    "prediction.proposals": ("prediction/proposals.py", LINKS),
    "prediction.observed_graph": ("prediction/observed_graph.py", ANSWERS),
    "prediction.outputs": ("prediction/outputs.py", ("prediction",)),
    "explanation.explainer": ("explanation/explainer.py", REASONS),
    "explanation.case": ("explanation/case.py", REASONS),
    "training.loop": ("training/loop.py", (LOOP, "training/test_loop.py", TRAINING, "training/test_depth.py")),
}
RESULTS = ROOT / "runs" / "mutants.jsonl"
EQUIVALENT = Path(__file__).with_name("mutate_equivalent.toml")


@dataclass(frozen=True)
class Mutant:
    """The `number`-th fault of a module."""

    module: str
    number: int
    line: int
    span: tuple[int, int]
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
    return [Mutant(module, number, m.line, m.span, m.where, m.what) for number, m in enumerate(found)]


def read_results() -> dict[str, Outcome]:
    """What became of every mutant tried so far; the last try counts."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {row.pop("mutant"): row for row in map(json.loads, lines)}


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
    parser.add_argument("--fresh", action="store_true", help="try again what was killed before")
    parser.add_argument("--survivors", action="store_true", help="only what survived last time")
    arguments = parser.parse_args()
    modules = arguments.module or list(TARGETS)
    results = read_results()
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
    run_all([m for m in mutants if m.name not in equivalent], results, arguments.fresh)
    report(mutants, results, equivalent)


def run_all(mutants: Sequence[Mutant], results: dict[str, Outcome], fresh: bool) -> None:
    """Try what has no result yet, and write every result at once."""
    digests = {module: digest(module) for module in {m.module for m in mutants}}

    def is_done(mutant: Mutant) -> bool:
        old = results.get(mutant.name, {})
        return old.get("outcome") in ("killed", "timeout") or old.get("of") == digests[mutant.module]

    waiting = [m for m in mutants if fresh or not is_done(m)]
    if not waiting:
        return
    tests = {module: tests_of(module) for module in {m.module for m in waiting}}
    watcher = warm_up(sorted({test for files in tests.values() for test in files}), map(source_of, tests))
    RESULTS.parent.mkdir(exist_ok=True)
    for place, mutant in enumerate(waiting):
        source = source_of(mutant.module)
        here = [str(Path(test).relative_to(ROOT)) for test in tests[mutant.module]]
        chosen = watcher.covering(source, *mutant.span) if mutant.span[0] else watcher.quick_first(here)
        trial = Trial(source, mutant.number, {test: watcher.tests[test].seconds for test in chosen})
        results[mutant.name] = try_fault(trial) | {"of": digests[mutant.module]}
        outcome = results[mutant.name]
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"mutant": mutant.name, **outcome}, ensure_ascii=False) + "\n")
        print(
            f"{place + 1}/{len(waiting)} {outcome['outcome']:9} {outcome['seconds']:5.1f} s  {mutant.name}", flush=True
        )


if __name__ == "__main__":
    main()
