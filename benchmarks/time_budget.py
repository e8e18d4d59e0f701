"""Does the rule choose well? Its choice for a time beside a grid of fixed choices that fill the same time.

Run: python benchmarks/time_budget.py DATA ... --time 2m 10m [--preset default] [--set memory.enabled=off]
         [--layers 2 3 4 6] [--negatives 32 128] [--limit 1500] [--seed 0] [--scratch runs/time_budget]
         [--output results/time_budget.json] [--survey]
     python benchmarks/time_budget.py --show             (the table for docs/training.md and docs/time_budget.png)

A graph is surveyed once for every time; the rule's choice and every depth and number of negatives of the grid get as
many passes as that survey says fit. A benchmark's file of settings counts, but for what the rule is there to choose.
All are compared by MRR on the same validation triples, paired; test triples are ranked for their time alone, and
nothing is made of the result. Every cell is written as soon as it is done; a stopped benchmark goes on where it was.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from draw_time_budget import draw, markdown
from kgcf.config import benchmark_values, configure
from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.durations import read_duration
from kgcf.figure_files import save_picture
from kgcf.machine.provenance import provenance
from kgcf.pipeline import evaluate_on_test, fit, resume, step_context
from kgcf.runs.run import Run
from kgcf.runs.time_budget import Situation, chosen_changes, fixed_by, settle_in_time, with_choice
from kgcf.storage import map_arrays, save_arrays, write_json
from kgcf.training.choice import Choice, TimeError, list_options
from kgcf.training.survey import Survey

CHOSEN = {
    "encoder": ("layers",),
    "objective": ("negatives",),
    "training": ("epochs", "budget", "validate_triples", "batches_per_epoch", "fan_in"),
}  # what a benchmark's file may say and this comparison does not let it say
RESULTS, PICTURE = Path("results/time_budget.json"), Path("docs/time_budget.png")


@dataclass(frozen=True)
class Plan:
    """How cells are trained and compared."""

    preset: str
    limit: int
    seed: int
    scratch: Path
    changes: tuple[str, ...] = ()  # settings that every cell has, section.key=value


@dataclass(frozen=True)
class Cell:
    """One training."""

    name: str  # "rule", or layers and negatives
    choice: Choice


class Records:
    """The file of results: what is in it is not done again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.values: dict[str, Any] = {"graphs": {}}
        if path.is_file():
            self.values = json.loads(path.read_text(encoding="utf-8"))

    def of(self, dataset: str, seconds: float, plan: "Plan") -> dict[str, Any]:
        """What is known about one graph and time."""
        key = ", ".join([dataset, f"{seconds:.0f} s", plan.preset, *plan.changes])
        known: dict[str, Any] = self.values["graphs"].setdefault(key, {"cells": {}})
        return known

    def write(self, known: dict[str, Any]) -> None:
        """Keep what is known about a graph and time, with when and where it was found."""
        known["protocol"] = provenance()
        self.values["compared"] = __doc__
        write_json(self._path, self.values)


def free_data(name: str) -> tuple[Dataset, list[str]]:
    """The data as if nobody had a file of settings for them, and what that file says besides the rule's business."""
    data = read(name)
    values = {} if data.benchmark is None else benchmark_values(data.benchmark)
    kept = [
        f"{section}.{key}={json.dumps(value)}"
        for section, keys in values.items()
        for key, value in keys.items()
        if key not in CHOSEN.get(section, ())
    ]
    return replace(data, benchmark=None), kept


def survey(data: Dataset, changes: list[str], seconds: float, plan: Plan) -> dict[str, Any]:
    """What `kgcf train --time` would find and choose; or why it would refuse."""
    settings = configure(plan.preset, changes=changes, seed=plan.seed)
    given = configure("default", changes=changes, seed=plan.seed)
    situation = Situation(step_context, torch.device("cpu"))
    try:
        settled = settle_in_time(settings, given, data, seconds, situation, say=print)
    except TimeError as error:
        return {"refused": str(error)}
    assert settled.record is not None
    return settled.record


def cells(
    record: dict[str, Any], data: Dataset, changes: list[str], plan: Plan, grid: set[tuple[int, int]]
) -> Iterator[Cell]:
    """The rule's choice, then the grid, with the passes that the survey says fit."""
    yield Cell("rule", Choice(**record["choice"]))
    settings = configure(plan.preset, changes=changes, seed=plan.seed)
    fixed = fixed_by(settings, configure("default", changes=changes, seed=plan.seed), data)
    found = Survey.from_json(record["survey"])
    for option in list_options(found, record["seconds"], fixed, record["spent"]):
        if option.fan_in is None and (option.layers, option.negatives) in grid:
            yield Cell(f"{option.layers} × {option.negatives}", option)


def train(cell: Cell, data: Dataset, changes: list[str], folder: Path, plan: Plan) -> dict[str, Any]:
    """Train one cell, or go on with it; its seconds, and for the rule's the whole command with its test."""
    settings = configure(plan.preset, changes=changes, seed=plan.seed)
    began = time.monotonic()
    if (folder / "run.json").is_file():
        run = resume(folder)
    else:
        more = [*changes, *chosen_changes(with_choice(settings, cell.choice))]
        run = fit(data, folder, preset=plan.preset, changes=more, seed=plan.seed, time="none")
    seconds = time.monotonic() - began
    reciprocal = _reciprocal_ranks(run, plan)
    save_arrays(folder.with_suffix(".ranks.safetensors"), {"reciprocal": reciprocal})
    found = {"mrr": float(reciprocal.mean()), "queries": len(reciprocal), "seconds": round(seconds, 1)}
    if cell.name == "rule":
        began = time.monotonic()
        evaluate_on_test(run)
        found["whole_seconds"] = round(seconds + time.monotonic() - began, 1)
    chosen = {key: value for key, value in vars(cell.choice).items() if key not in ("reason", "seconds")}
    return {**found, **chosen, "promised_seconds": round(cell.choice.seconds, 1)}


def _reciprocal_ranks(run: Run, plan: Plan) -> NDArray[np.float64]:
    """[2Q] of the same validation triples for every cell."""
    limit = plan.limit if plan.limit < len(run.data.valid) else None
    return 1 / run.evaluate("valid", limit=limit, seed=plan.seed).ranks.realistic


def compare(known: dict[str, Any], scratch: Path) -> None:
    """The regret of the rule's choice: how much the best of the grid is better, with its paired standard error.

    The best of several is better by luck too. So it is also chosen on one half of the triples and compared on the
    other, both ways round: "held out".
    """
    ranks = {
        name: np.asarray(map_arrays(_folder(scratch, name).with_suffix(".ranks.safetensors"))["reciprocal"])
        for name in known["cells"]
    }
    best = max(known["cells"], key=lambda name: float(known["cells"][name]["mrr"]))
    difference = ranks[best] - ranks["rule"]
    count = len(difference) // 2  # triples: tails of all, then heads of all
    half = np.tile(np.random.default_rng(0).permutation(count) % 2 == 0, 2)
    held_out = np.empty(len(difference))
    for inside in (half, ~half):
        favourite = max(ranks, key=lambda name: float(ranks[name][~inside].mean()))
        held_out[inside] = (ranks[favourite] - ranks["rule"])[inside]
    known["regret"] = {
        "best": best,
        "mrr": float(difference.mean()),
        "standard_error": _standard_error(difference),
        "held_out": float(held_out.mean()),
        "held_out_standard_error": _standard_error(held_out),
    }


def _standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _same(cell: Cell, done: dict[str, Any], scratch: Path) -> dict[str, Any] | None:
    """What the rule's choice came to, where the grid has the very same: it is not trained twice."""
    rule = done.get("rule")
    sizes = ("layers", "negatives", "passes", "validate_triples", "threads", "fan_in")
    if rule is None or any(rule.get(size) != getattr(cell.choice, size) for size in sizes):
        return None
    ranks = map_arrays(_folder(scratch, "rule").with_suffix(".ranks.safetensors"))
    save_arrays(_folder(scratch, cell.name).with_suffix(".ranks.safetensors"), ranks)
    return {name: value for name, value in rule.items() if name != "whole_seconds"}


def _folder(scratch: Path, name: str) -> Path:
    return scratch / name.replace(" × ", "x")


def run_graph(name: str, seconds: float, plan: Plan, grid: set[tuple[int, int]], records: Records) -> None:
    """All cells of one graph and time; without a grid only its survey."""
    data, changes = free_data(name)
    changes += plan.changes
    known = records.of(data.name, seconds, plan)
    known.setdefault("survey", None)
    if known["survey"] is None:
        known["survey"] = survey(data, changes, seconds, plan)
        records.write(known)
    if "refused" in known["survey"]:
        print(f"{name}: {known['survey']['refused']}", flush=True)
        return
    if not grid:
        return
    scratch = plan.scratch / "-".join([data.name.replace(":", "_"), f"{seconds:.0f}", plan.preset, *plan.changes])
    for cell in cells(known["survey"], data, changes, plan, grid):
        if cell.name not in known["cells"]:
            known["cells"][cell.name] = _same(cell, known["cells"], scratch) or train(
                cell, data, changes, _folder(scratch, cell.name), plan
            )
            compare(known, scratch)
            records.write(known)
            done = known["cells"][cell.name]
            print(f"{name}, {seconds:.0f} s, {cell.name}: MRR {done['mrr']:.4f}, {done['seconds']:.0f} s", flush=True)
    compare(known, scratch)
    records.write(known)


def main() -> None:
    """Train what is missing, or show what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--time", nargs="+", default=["2m", "10m"])
    parser.add_argument("--preset", default="default")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="for every cell")
    parser.add_argument("--layers", nargs="+", type=int, default=[2, 3, 4, 6])
    parser.add_argument("--negatives", nargs="+", type=int, default=[32, 128])
    parser.add_argument("--limit", type=int, default=1500, help="validation triples that are compared on, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scratch", type=Path, default=Path("runs/time_budget"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    parser.add_argument("--survey", action="store_true", help="only survey (on the idle machine); train later")
    parser.add_argument("--show", action="store_true", help="print the table and draw the picture")
    given = parser.parse_args()
    records = Records(given.output)
    plan = Plan(given.preset, given.limit, given.seed, given.scratch, tuple(given.set))
    grid = set() if given.survey else {(layers, count) for layers in given.layers for count in given.negatives}
    for name in given.data:
        for text in given.time:
            seconds = read_duration(text)
            assert seconds is not None
            run_graph(name, seconds, plan, grid, records)
    if given.show:
        print(markdown(records.values["graphs"]))
        save_picture(draw(records.values["graphs"]), given.picture)


if __name__ == "__main__":
    main()
