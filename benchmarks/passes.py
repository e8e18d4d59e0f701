"""What grouping answers and drawing negatives among the reached gain on validation at equal processor time.

Run: python benchmarks/passes.py DATA [--preset nbfnet] [--seconds 300] [--layers 6] [--output FILE.json]

Every variant is timed over a few steps first; its number of passes then fills the same time of one thread. The
learning rate follows a cosine over these passes. All variants are validated on the same triples (at least 1,000 where
there are as many), so their differences are paired; the file is written after every variant, and finished ones of the
same protocol are not repeated.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from kgcf.config import configure
from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.evaluation.ranks import rank_answers
from kgcf.pipeline import fit
from machine import describe_protocol
from steps import trainer_step

TIMED = 12  # steps
VARIANTS = {
    "single answers, negatives among all": ("objective.answers=1", "objective.negatives_from=all"),
    "up to 8 answers, among all": ("objective.answers=8", "objective.negatives_from=all"),
    "single answers, among the reached": ("objective.answers=1", "objective.negatives_from=reached"),
    "up to 8 answers, among the reached": ("objective.answers=8", "objective.negatives_from=reached"),
}


def seconds_per_pass(data: Dataset, preset: str, changes: tuple[str, ...]) -> float:
    """Processor time of a pass within whole steps of the trainer, one thread."""
    size = configure(preset, data.benchmark, None, changes).training.batch_size
    with tempfile.TemporaryDirectory() as scratch:
        step = trainer_step(data, preset, changes, Path(scratch))
        for index in range(3):
            step(index)
        started = time.process_time()
        for index in range(3, 3 + TIMED):
            step(index)
        return (time.process_time() - started) / (TIMED * size)


def measure(data: Dataset, preset: str, changes: tuple[str, ...], seconds: float, triples: int) -> dict[str, Any]:
    """Train for the time, and rank validation triples with what train knows."""
    cost = seconds_per_pass(data, preset, changes)
    size = configure(preset, data.benchmark, None, changes).training.batch_size
    steps = int(seconds / (cost * size))
    filled = (*changes, f"training.batches_per_epoch={steps}", "training.epochs=1", "training.validate_triples=1")
    with tempfile.TemporaryDirectory() as scratch:
        started = time.process_time()
        run = fit(data, Path(scratch) / "run", preset=preset, changes=filled)
        spent = time.process_time() - started
        chosen = np.random.default_rng(0).permutation(len(data.valid))[:triples]
        ranks = rank_answers(
            run.bind(data.valid.observed, data.valid.entities).scorer, data.valid, data.valid.queries[chosen]
        ).realistic
    return {
        "milliseconds_per_pass": cost * 1000,
        "passes": steps * size,
        "seconds": spent,
        "mrr": float((1 / ranks).mean()),
        "mean_rank": float(ranks.mean()),
        "hits@10": float((ranks <= 10).mean()),
        "reciprocal": [round(float(value), 5) for value in 1 / ranks],
    }


def main() -> None:
    """Measure all variants that are not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--preset", default="nbfnet")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--triples", type=int, default=1500)
    parser.add_argument("--set", action="append", default=[], dest="changes")
    parser.add_argument("--only", action="append", default=[], help="part of a variant's name")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    data = read(given.data)
    shared = ("training.threads=1", "training.schedule=cosine", *given.changes)
    found: dict[str, Any] = json.loads(given.output.read_text()) if given.output and given.output.exists() else {}
    name = " ".join([given.data, given.preset, f"{given.seconds:g} s", *given.changes])
    cells = found.setdefault(name, {"protocol": describe_protocol(1), "triples": given.triples, "variants": {}})
    for variant, changes in VARIANTS.items():
        if variant in cells["variants"] or not all(part in variant for part in given.only):
            continue
        cell = measure(data, given.preset, (*shared, *changes), given.seconds, given.triples)
        cells["variants"][variant] = cell
        print(name, variant, {key: value for key, value in cell.items() if key != "reciprocal"}, flush=True)
        if given.output:
            given.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
