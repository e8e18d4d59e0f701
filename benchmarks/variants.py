"""Which settings validation prefers at equal processor time, or after equally many passes.

Run: python benchmarks/variants.py DATA --of passes|fan_in|layers|negatives|wn18rr [--seconds 300 | --passes N]
         [--preset nbfnet] [--set encoder.layers=3] [--only PART] [--output FILE.json]

DATA is the name of a benchmark or a folder. Every variant is timed over a few steps first; its number of steps then
fills the same processor time of one thread, and the learning rate follows a cosine over them. Only steps count:
neither reading nor ranking. All variants are validated on the same triples (at least 1,000 where there are as many),
ranked exactly, so their differences to the first variant are paired. The file is written after every variant, and
finished ones of the same protocol are not repeated.
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

WARM, TIMED = 3, 10  # steps before the clock runs, and while it does
Changes = tuple[str, ...]
REACHED = "objective.negatives_from=reached"
SETS: dict[str, dict[str, Changes]] = {
    "passes": {
        "single answers, negatives among all": ("objective.answers=1", "objective.negatives_from=all"),
        "up to 8 answers, among all": ("objective.answers=8", "objective.negatives_from=all"),
        "single answers, among the reached": ("objective.answers=1", REACHED),
        "up to 8 answers, among the reached": ("objective.answers=8", REACHED),
    },
    "fan_in": {name: (f"training.fan_in={name}",) for name in ("none", "64", "32", "16", "8", "4", "2")},
    "layers": {str(count): (f"encoder.layers={count}",) for count in (2, 3, 4, 5, 6)},
    "negatives": {str(count): (f"objective.negatives={count}",) for count in (32, 64, 128, 256, 512)},
    "wn18rr": {
        "its file": (),
        "width 64": ("encoder.width=64",),
        "temperature .5": ("objective.temperature=0.5",),
        "dependent": ("encoder.dependent=true",),
        "8 answers": ("objective.answers=8",),
        "64 negatives from the reached": ("objective.negatives=64", REACHED),
        "128 from the reached": ("objective.negatives=128", REACHED),
        "256 from the reached": ("objective.negatives=256", REACHED),
        "1,024 from the reached": ("objective.negatives=1024", REACHED),
        "512 among all": ("objective.negatives=512",),
        "8 layers": ("encoder.layers=8",),
    },
}


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


def steps_for(data: Dataset, preset: str, changes: Changes, seconds: float, scratch: Path) -> int:
    """How many steps the time has room for."""
    probe = prepare(data, preset, changes, scratch)
    spend(probe, range(WARM))
    cost = spend(probe, range(WARM, WARM + TIMED)) / TIMED
    return max(int(seconds / cost), 1)


def measure(data: Dataset, changes: Changes, given: argparse.Namespace) -> dict[str, Any]:
    """Train for the time or the passes, and validate."""
    with tempfile.TemporaryDirectory(prefix="kgcf-benchmark-") as scratch:
        if given.passes is None:
            steps = steps_for(data, given.preset, changes, given.seconds, Path(scratch))
        else:
            steps = given.passes // prepare(data, given.preset, changes, Path(scratch)).settings.training.batch_size
        filled = (*changes, f"training.batches_per_epoch={steps}", "training.epochs=1", "training.budget=none")
        prepared = prepare(data, given.preset, filled, Path(scratch))
    spent = spend(prepared, range(steps))
    size = prepared.settings.training.batch_size
    cell = {"milliseconds_per_pass": spent / steps / size * 1e3, "passes": steps * size, "seconds": spent}
    return cell | validate(data, prepared, given.triples)


def against(cell: dict[str, Any], first: dict[str, Any]) -> dict[str, float]:
    """How much better the cell is than the first variant, triple by triple, with the error of this."""
    difference = np.asarray(cell["reciprocal"]) - np.asarray(first["reciprocal"])
    return {"mrr": float(difference.mean()), "error": float(difference.std(ddof=1) / np.sqrt(len(difference)))}


def main() -> None:
    """Measure all variants that are not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--of", choices=SETS, required=True)
    parser.add_argument("--preset", default="nbfnet")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--passes", type=int, help="equally many passes instead of equal time")
    parser.add_argument("--triples", type=int, default=1500)
    parser.add_argument("--set", action="append", default=[], dest="changes")
    parser.add_argument("--only", action="append", default=[], help="part of a variant's name; repeat for several")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    data = read(given.data)
    shared = ("training.threads=1", "training.schedule=cosine", *given.changes)
    found: dict[str, Any] = json.loads(given.output.read_text()) if given.output and given.output.exists() else {}
    size = f"{given.seconds:g} s" if given.passes is None else f"{given.passes} passes"
    name = " ".join([Path(given.data).name, given.preset, size, *given.changes])
    protocol = describe_protocol(1) | {"times": "processor seconds of the steps", "filter": "train and valid"}
    cells = found.setdefault(name, {"protocol": protocol, "triples": given.triples, "variants": {}})
    variants: dict[str, Any] = cells["variants"]
    for variant, changes in SETS[given.of].items():
        if variant in variants or (given.only and not any(part in variant for part in given.only)):
            continue
        variants[variant] = measure(data, (*shared, *changes), given)
        variants[variant]["against the first"] = against(variants[variant], next(iter(variants.values())))
        shown = {key: value for key, value in variants[variant].items() if key != "reciprocal"}
        print(name, variant, shown, flush=True)
        if given.output:
            given.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
