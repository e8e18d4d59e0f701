"""What a fan-in gains on validation at equal processor time: an update aggregates at most F edges, or all.

Run: python benchmarks/fan_in.py DATA [--preset nbfnet] [--seconds 600] [--set encoder.layers=3] [--output FILE.json]

DATA is the name of a benchmark or a folder. Every variant is timed over a few steps first; its number of steps then
fills the same processor time of one thread, and the learning rate follows a cosine over them. Only steps count:
neither reading nor ranking. All variants are validated on the same triples (at least 1,000 where there are as many),
ranked exactly, so their differences are paired. The file is written after every variant, and finished ones of the
same protocol are not repeated.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.evaluation.ranks import rank_answers
from kgcf.prediction.observed_graph import ObservedGraph
from machine import describe_protocol
from steps import Prepared, prepare

FAN_INS = ("none", "64", "32", "16", "8")
WARM, TIMED = 3, 10  # steps before the clock runs, and while it does


def spend(prepared: Prepared, steps: range) -> float:
    """Seconds of processor time that these steps take."""
    started = time.process_time()
    for index in steps:
        prepared.step(index)
    return time.process_time() - started


def validate(data: Dataset, prepared: Prepared, triples: int) -> dict[str, Any]:
    """Rank validation triples, exactly, with what train knows."""
    model, treatment = prepared.context.model, prepared.treatment
    scorer = ObservedGraph(model, data.graph, data.entities, data.relations, treatment).scorer
    chosen = np.random.default_rng(0).permutation(len(data.valid))[:triples]
    ranks = rank_answers(scorer, data.valid, data.valid.queries[chosen]).realistic
    return {
        "mrr": float((1 / ranks).mean()),
        "mean_rank": float(ranks.mean()),
        "hits@10": float((ranks <= 10).mean()),
        "reciprocal": [round(float(value), 5) for value in 1 / ranks],
    }


def measure(data: Dataset, preset: str, changes: tuple[str, ...], seconds: float, triples: int) -> dict[str, Any]:
    """Train for the time and validate."""
    with tempfile.TemporaryDirectory(prefix="kgcf-benchmark-") as scratch:
        probe = prepare(data, preset, changes, Path(scratch))
        spend(probe, range(WARM))
        cost = spend(probe, range(WARM, WARM + TIMED)) / TIMED
        steps = max(int(seconds / cost), 1)
        filled = (*changes, f"training.batches_per_epoch={steps}", "training.epochs=1", "training.budget=none")
        prepared = prepare(data, preset, filled, Path(scratch))
    spent = spend(prepared, range(steps))
    size = prepared.settings.training.batch_size
    cell = {"milliseconds_per_pass": spent / steps / size * 1e3, "passes": steps * size, "seconds": spent}
    return cell | validate(data, prepared, triples)


def main() -> None:
    """Measure all fan-ins that are not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--preset", default="nbfnet")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--triples", type=int, default=1500)
    parser.add_argument("--set", action="append", default=[], dest="changes")
    parser.add_argument("--only", action="append", choices=FAN_INS, help="repeat for several; default all")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    data = read(given.data)
    shared = ("training.threads=1", "training.schedule=cosine", *given.changes)
    found: dict[str, Any] = json.loads(given.output.read_text()) if given.output and given.output.exists() else {}
    name = " ".join([Path(given.data).name, given.preset, f"{given.seconds:g} s", *given.changes])
    cells = found.setdefault(name, {"protocol": describe_protocol(1), "triples": given.triples, "variants": {}})
    for fan_in in given.only or FAN_INS:
        if fan_in in cells["variants"]:
            continue
        cell = measure(data, given.preset, (*shared, f"training.fan_in={fan_in}"), given.seconds, given.triples)
        cells["variants"][fan_in] = cell
        shown = {key: value for key, value in cell.items() if key != "reciprocal"}
        print(name, f"fan-in {fan_in}", shown, flush=True)
        if given.output:
            given.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
