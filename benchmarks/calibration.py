"""What calibration is worth: ECE and Brier score before and after, for every method, on the test split of runs.

Run: python benchmarks/calibration.py RUN [RUN …] [--limit 1000] [--output calibration.json] [--plots FOLDER]
Fitted on validation, reported on test, on every test triple unless a limit is given. The runs are not changed.
"""

import argparse
from pathlib import Path

from rich.console import Console

from kgcf.calibrating import CalibrationRecord
from kgcf.evaluation.calibration import METHODS
from kgcf.evaluation.calibration_view import calibration_table, plot_reliability
from kgcf.run import Run
from kgcf.storage import write_json


def main() -> None:
    """Calibrate every run, print the table, write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=None, help="triples of a split, drawn at random [default: all]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="write every calibration with its protocol as JSON")
    parser.add_argument("--plots", type=Path, help="folder for reliability plots, one SVG per run")
    given = parser.parse_args()
    found: dict[str, CalibrationRecord] = {}
    for path in given.runs:
        found[path.name] = Run.open(path).calibrate(limit=given.limit, seed=given.seed, save=False)
    show(found)
    if given.output is not None:
        write_json(given.output, {name: record.to_json() for name, record in found.items()})
    for name, record in found.items():
        if given.plots is not None and record.test is not None:
            plot_reliability(record.test, record.calibration.method, given.plots / f"{name}.svg")


def show(found: dict[str, CalibrationRecord]) -> None:
    """Each method of each run, then which one the run uses and why."""
    console = Console(highlight=False, soft_wrap=True)
    rows = [
        (name, method, record.test)
        for name, record in found.items()
        if record.test is not None
        for method in METHODS
        if method in record.calibration.curves
    ]
    if rows:
        console.print(calibration_table(rows))
    for name, record in found.items():
        measured = "" if record.test is not None else " There are no test answers."
        console.print(f"{name} uses {record.calibration.method}. {record.calibration.reason}{measured}")


if __name__ == "__main__":
    main()
