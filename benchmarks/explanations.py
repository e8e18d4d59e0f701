"""Do explanations matter, and are they the right ones? The deletion curve of a run, and gold mechanisms on drugmechdb.

Run: python benchmarks/explanations.py RUN [--split test] [--triples 200] [--seed 0] [--rule own-mean]
     [--paths 1 2 3 5 10] [--output FILE.json]
The observed graph is train; triples of the split are drawn at random and asked for their tails. A rule says how a path
is weighed: an edge counts in the layer of its step (`own`) or over all layers (`all`), a path weighs the mean or the
sum of its edges; `integrated-…` takes integrated gradients instead of gradients. Rules are compared on validation
(--split valid, --rule several times), one is measured on test. Gold mechanisms are looked for if the run is one on
drugmechdb.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.data.hiding import Remove
from kgcf.explanation.case import open_case
from kgcf.explanation.deletion import KINDS, DeletionCurve, Removed, trace_deletions
from kgcf.explanation.paths import Layers, Weighting
from kgcf.machine.provenance import provenance
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.progress import showing
from kgcf.runs.run import Run
from mechanisms import Rule, measure_gold

WAYS: tuple[Layers, ...] = ("own", "all")
WEIGHTINGS: tuple[Weighting, ...] = ("mean", "sum")
RULES: dict[str, Rule] = {
    **{f"{way}-{weighting}": Rule(way, weighting) for way in WAYS for weighting in WEIGHTINGS},
    **{f"integrated-{way}-{weighting}": Rule(way, weighting, "integrated") for way in WAYS for weighting in WEIGHTINGS},
}


def main() -> None:
    """Measure one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--split", choices=("valid", "test"), default="test")
    parser.add_argument("--triples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the triples drawn and of the random paths")
    parser.add_argument("--rule", choices=list(RULES), action="append", help="repeatable [default: own-mean]")
    parser.add_argument("--paths", type=int, nargs="+", default=[1, 2, 3, 5, 10], help="points of the deletion curve")
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    rules = chosen.rule or ["own-mean"]
    report = measure(Run.open(chosen.run), chosen.split, chosen.triples, chosen.seed, rules, chosen.paths)
    text = json.dumps(report, indent=2)
    print(text)
    if chosen.output is not None:
        chosen.output.write_text(text + "\n", encoding="utf-8")


def measure(
    run: Run, split: str, count: int, seed: int, rules: list[str], counts: Sequence[int] = (1, 2, 3, 5, 10)
) -> dict[str, Any]:
    """Everything about one run, with its protocol."""
    task = run.data.valid if split == "valid" else run.data.test
    observed = run.bind(task.observed, task.entities)
    remove: Remove = "pair" if run.settings.training.remove == "pair" else "triple"
    questions = draw_questions(task.queries, count, seed)
    report: dict[str, Any] = {
        "run": run.folder.path.name,
        "dataset": run.data.name,
        "protocol": {"split": split, "observed": "train", "asked": "tail", "triples": len(questions), "seed": seed},
        "provenance": provenance(),
        "deletion": {rule: measure_deletion(observed, questions, remove, RULES[rule], seed, counts) for rule in rules},
    }
    if run.data.name == "drugmechdb":
        report["gold"] = measure_gold(observed, task.queries, remove, [RULES[rule] for rule in rules], seed)
    return report


def draw_questions(queries: NDArray[np.int32], count: int, seed: int) -> NDArray[np.int32]:
    """Some of the triples, at random."""
    return queries[np.random.default_rng(seed).permutation(len(queries))[:count]]


def measure_deletion(
    observed: ObservedGraph,
    questions: NDArray[np.int32],
    remove: Remove,
    rule: Rule,
    seed: int,
    counts: Sequence[int],
) -> dict[str, Any]:
    """The deletion curve over the questions that a path answers."""
    with showing(f"deletion, {rule.name}", len(questions)) as advance:
        cases = (open_case(observed, h, r, t, remove, rule.layers, rule.attribution) for h, r, t in questions.tolist())
        curve = trace_deletions(cases, np.random.default_rng(seed), counts, rule.weighting, advance)
    return {
        "triples": len(curve),
        "without_path": curve.without_path,
        "without_random": curve.without_random,
        "random_is_top": curve.same,
        "points": [point(curve, i, seed) for i in range(len(curve.counts))] if len(curve) else [],
    }


def point(curve: DeletionCurve, index: int, seed: int) -> dict[str, Any]:
    """One point of the curve: mean drops of the logit, cut pairs, and paired differences with 95 % intervals."""
    found: dict[str, Any] = {"paths": curve.counts[index], "edges": float(curve.removed[:, index].mean())}
    for kind in KINDS:
        found[f"{kind}_drop"] = float(curve.drops[kind][:, index].mean())
        found[f"{kind}_cut"] = float(curve.cut[kind][:, index].mean())
    controls: tuple[Removed, ...] = ("random", "shortest")
    for control in controls:
        for connected in (False, True):
            interval = curve.difference(index, np.random.default_rng(seed), control, connected)
            key = f"top_minus_{control}" + ("_where_a_path_is_left" if connected else "")
            found[key] = None if interval is None else [interval.value, interval.low, interval.high]
    return found


if __name__ == "__main__":
    main()
