"""What variants of the counterfactual loss gain on validation, against α = 0 and against random labels.

Run: python benchmarks/counterfactual_loss.py DATA … [--passes 6000] [--seeds 3] [--alpha 0.1] [--only PART …]
         [--output FILE.json]

Every variant is trained with the same passes, seeds, order and negatives, one thread, and validated on the same
triples: all of them, or `--triples` drawn at random. Reciprocal ranks are averaged over the seeds and the two questions
of a triple; differences are paired over triples, their 95 % intervals bootstrapped. "Beyond control" is the gain over
α = 0 with true labels minus the same gain with core numbers dealt out at random; α = 0 with twice the passes asks as
many questions as a loss that asks for substitutes too. Test is not looked at. The file is
written after every training, and finished ones of the same protocol are not repeated.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.counterfactual import CounterfactualTable
from kgcf.causal.embedding import open_space
from kgcf.config import configure
from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.evaluation.ranks import rank_answers
from kgcf.pipeline import fit
from machine import describe_protocol

ASKED = ("objective.cf_state=substitute", "objective.cf_pairs=all")
RANDOM = ("treatment.method=shuffled_core",)
NONE = ("objective.alpha=0.0",)
BASE, TWICE, DRAWS = "α = 0", "α = 0, twice the passes", 10_000
LOSSES: dict[str, tuple[str, ...]] = {
    BASE: NONE,
    TWICE: NONE,
    "outcome": (),
    "printed": ("objective.cf_target=printed",),
    "by distance": ("objective.cf_weight=distance",),
    "nearest quarter": ("objective.cf_weight=0.25",),
    "substitutes asked": ASKED,
}
CONTROLLED = (BASE, "outcome", "by distance", "substitutes asked")


def random_name(loss: str) -> str:
    """What a loss is called when its labels are random."""
    return f"{loss}, random labels"


VARIANTS = LOSSES | {random_name(name): (*LOSSES[name], *RANDOM) for name in CONTROLLED}


def train(data: Dataset, changes: tuple[str, ...], seed: int, triples: int | None) -> dict[str, Any]:
    """Train once; [Q] the mean reciprocal rank of both questions of every validation triple."""
    with tempfile.TemporaryDirectory() as scratch:
        started = time.process_time()
        run = fit(data, Path(scratch) / "run", changes=changes, seed=seed, time="none", progress=False)
        spent = time.process_time() - started
        chosen = np.random.default_rng(0).permutation(len(data.valid))[:triples]
        bound = run.bind(data.valid.observed, data.valid.entities)
        ranks = rank_answers(bound.scorer, data.valid, data.valid.queries[np.sort(chosen)]).realistic
        near = nearness(data, Path(scratch) / "run") if run.settings.needs_matching else {}
    reciprocal = (1 / ranks).reshape(2, len(chosen)).mean(axis=0)  # tails of all triples come first, then heads
    return {
        "processor_seconds": round(spent, 1),
        **near,
        "reciprocal": [round(float(value), 5) for value in reciprocal],
    }


def nearness(data: Dataset, folder: Path) -> dict[str, float]:
    """How far substitutes are, how far any other train triple is, and how often substitutes are known triples."""
    table = CounterfactualTable.from_parquet(folder / "counterfactuals.parquet")
    space, ends = open_space(folder / "space.safetensors").vectors, data.graph.triples[:, [0, 2]]
    others = np.random.default_rng(0).permutation(ends)
    anywhere = np.linalg.norm(space[ends] - space[others], axis=2).sum(axis=1)
    found = {"distance": np.median(table.distances[table.matched]), "distance_of_any": np.median(anywhere)}
    found |= {"matched": table.matched.mean(), "outcome": table.counterfactual_outcomes[table.matched].mean()}
    return {name: round(float(value), 4) for name, value in found.items()}


def mean_over_seeds(found: dict[str, Any], variant: str) -> NDArray[np.float64]:
    """[Q] reciprocal ranks of a variant."""
    means: NDArray[np.float64] = np.mean([cell["reciprocal"] for cell in found[variant].values()], axis=0)
    return means


def interval(difference: NDArray[np.float64]) -> list[float]:
    """The mean over triples and its bootstrapped 95 % interval."""
    generator = np.random.default_rng(0)
    means = [difference[generator.integers(0, len(difference), len(difference))].mean() for _ in range(DRAWS)]
    low, high = np.quantile(means, [0.025, 0.975])
    return [round(float(value), 5) for value in (difference.mean(), low, high)]


def summarise(found: dict[str, Any], seeds: int) -> dict[str, dict[str, Any]]:
    """MRR of every finished variant by seed, its gain over α = 0 with the same labels, and that beyond the control."""
    whole = {name for name, cells in found.items() if len(cells) == seeds}
    rows: dict[str, dict[str, Any]] = {}
    for name in (name for name in VARIANTS if name in whole):
        values = mean_over_seeds(found, name)
        by_seed = [round(float(np.mean(cell["reciprocal"])), 4) for cell in found[name].values()]
        rows[name] = {"mrr": round(float(values.mean()), 4), "by_seed": by_seed}
        base = random_name(BASE) if name.endswith(random_name("")) else BASE
        if name != base and base in whole:
            rows[name]["over α = 0"] = interval(values - mean_over_seeds(found, base))
        control = random_name(name)
        if name != BASE and {control, base, random_name(BASE)} <= whole:
            random_gain = mean_over_seeds(found, control) - mean_over_seeds(found, random_name(BASE))
            rows[name]["beyond control"] = interval(values - mean_over_seeds(found, base) - random_gain)
        if name.startswith("substitutes asked") and TWICE in whole:
            rows[name]["over α = 0 with as many questions"] = interval(values - mean_over_seeds(found, TWICE))
        if {control} <= whole:
            rows[name]["true over random labels"] = interval(values - mean_over_seeds(found, control))
    return rows


def main() -> None:
    """Train what is not in the file yet, and summarise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--passes", type=int, default=6000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--triples", type=int, help="validation triples; none given: all")
    parser.add_argument("--only", action="append", help="a variant's name; repeat for several")
    parser.add_argument("--set", action="append", default=[], dest="changes")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    kept: dict[str, Any] = json.loads(given.output.read_text()) if given.output and given.output.exists() else {}
    shared = (f"objective.alpha={given.alpha}", "training.threads=1", "training.epochs=1", *given.changes)
    for seed in range(given.seeds):  # all of one seed before the next: a stopped measurement is one of fewer seeds
        for name in given.data:
            data = read(name)
            title = " ".join([name, f"{given.passes} passes", f"α {given.alpha:g}", *given.changes])
            protocol = {**describe_protocol(1), "times": "processor seconds of one training", "triples": given.triples}
            entry = kept.setdefault(title, {"protocol": protocol, "trained": {}})
            for variant in given.only or VARIANTS:
                cells = entry["trained"].setdefault(variant, {})
                if str(seed) in cells:
                    continue
                passes = given.passes * (2 if variant == TWICE else 1)
                steps = passes // configure("default", data.benchmark, None, shared).training.batch_size
                length = (f"training.batches_per_epoch={steps}", "training.validate_triples=1")
                filled = (*shared, *length, *VARIANTS[variant])
                cells[str(seed)] = train(data, filled, seed, given.triples)
                entry["seeds"], entry["summary"] = seed + 1, summarise(entry["trained"], seed + 1)
                print(title, seed, variant, f"{np.mean(cells[str(seed)]['reciprocal']):.4f}", flush=True)
                if given.output:
                    given.output.write_text(json.dumps(kept, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
