"""Do explanations hold? Every measurement of docs/explanations.md on one run, part by part.

Run: python benchmarks/explanations.py RUN --output FILE.json [--part PART …] [--split test] [--triples 200] [--seed 1]
     [--other RUN] [--rule removal …] [--planted FOLDER]
Parts: faithfulness (sufficiency and deletion), textbook (runs on family), gold (runs on drugmechdb), speed (processor
time of whole explanations), stability (needs --other, the same training with another seed), planted (generated graphs,
trained into the folder; needs no RUN). By default every part that the run allows. A part that FILE.json has already is
not measured again: what was stopped goes on by the same command. The observed graph is train; triples of the split are
drawn at random and asked for their tails. Rules are compared on validation (--split valid, --rule several times), one
is measured on test.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faithfulness import measure_faithfulness
from kgcf.data.dataset import Split
from kgcf.data.hiding import Remove
from kgcf.explanation.case import Case, open_case
from kgcf.machine.provenance import provenance
from kgcf.prediction.observed_graph import with_paths
from kgcf.progress import showing
from kgcf.runs.run import Run
from mechanisms import measure_gold
from planted import PLANS, measure_planted
from rivals import VALUES
from stability import measure_stability
from textbook import RELATIONS, measure_textbook

PARTS = ("faithfulness", "textbook", "gold", "stability", "speed", "planted")
Part = Callable[[], dict[str, Any]]
_TIMED = 30


def main() -> None:
    """Measure one run, part by part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--part", choices=PARTS, action="append", help="repeatable [default: all that the run allows]")
    parser.add_argument("--split", choices=("valid", "test"), default="test")
    parser.add_argument("--triples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the triples drawn and of the random paths")
    parser.add_argument("--other", type=Path, help="a run that differs in its training seed")
    parser.add_argument("--rule", choices=[*VALUES], action="append", help="repeatable [default: removal]")
    parser.add_argument("--planted", type=Path, help="folder for the runs on generated graphs")
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    report = json.loads(chosen.output.read_text(encoding="utf-8")) if chosen.output.is_file() else {}
    for name, measure in parts_of(chosen):
        if name not in report:
            report[name] = measure()
            chosen.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))


def parts_of(chosen: argparse.Namespace) -> Iterator[tuple[str, Part]]:
    """The parts that were asked for and that the run allows, each with what measures it."""
    wanted = chosen.part or PARTS
    if chosen.run is not None:
        questions = Questions(Run.open(chosen.run), chosen.split, chosen.triples, chosen.seed)
        yield "run", questions.describe
        for rule in chosen.rule or ["removal"]:
            if "faithfulness" in wanted:
                yield f"faithfulness, {rule}", lambda rule=rule: questions.faithfulness(rule)  # type: ignore[misc]
        if "textbook" in wanted and questions.run.data.name == "family":
            yield "textbook", questions.textbook
        if "gold" in wanted and questions.run.data.name == "drugmechdb":
            yield "gold", questions.gold
        if "speed" in wanted:
            yield "speed", questions.speed
        if "stability" in wanted and chosen.other is not None:
            yield "stability", lambda: questions.stability(Run.open(chosen.other))
    if "planted" in wanted and chosen.planted is not None:
        for plan in PLANS:
            measure = lambda plan=plan: measure_planted(plan, chosen.planted, chosen.split)  # noqa: E731
            yield f"planted, {plan.name}", measure


class Questions:
    """Triples of a split of a run, drawn at random, and what is measured on them."""

    def __init__(self, run: Run, split: str, count: int, seed: int) -> None:
        self.run = run
        self._split, self._count, self._seed = split, count, seed

    def describe(self) -> dict[str, Any]:
        """What was asked of which run, and where."""
        return {
            "run": self.run.folder.path.name,
            "dataset": self.run.data.name,
            "protocol": {
                "split": self._split,
                "observed": "train",
                "asked": "tail",
                "triples": self._count,
                "seed": self._seed,
            },
            "provenance": provenance(),
        }

    def faithfulness(self, rule: str) -> dict[str, Any]:
        """Sufficiency and deletion."""
        with showing(f"faithfulness, {rule}", self._count) as advance:
            return measure_faithfulness(self._cases(self.run, self._task.queries), self._seed, rule, advance)

    def textbook(self) -> dict[str, Any]:
        """Textbook rules, on the relations that have one."""
        relations = [self.run.data.relations.id(name, "relation") for name in RELATIONS]
        queries = self._task.queries[np.isin(self._task.queries[:, 1], relations)]
        with showing("textbook rules", self._count) as advance:
            return measure_textbook(self._cases(self.run, queries), advance)

    def gold(self) -> dict[str, Any]:
        """Curated mechanisms, on the pairs that have one."""
        observed = with_paths(self.run.bind(self._task.observed, self._task.entities))
        drawn = draw_questions(self._task.queries, self._count, self._seed)
        return measure_gold(observed, drawn, remove_rule(self.run), self._seed)

    def stability(self, other: Run) -> dict[str, Any]:
        """The first paths of two models."""
        pairs = zip(self._cases(self.run, self._task.queries), self._cases(other, self._task.queries), strict=True)
        with showing("stability", self._count) as advance:
            return measure_stability(pairs, advance)

    def speed(self) -> dict[str, Any]:
        """Processor time of whole explanations with five paths, once the pools of pairs are there."""
        explainer, seconds = self.run.explainer(observed="train"), []
        for h, r, t in draw_questions(self._task.queries, min(self._count, _TIMED), self._seed).tolist():
            before = time.process_time()
            found = explainer.explain_case(explainer.case(h, r, t))
            if found.paths:
                seconds.append(time.process_time() - before)
        rest = seconds[1:]  # the first compiles and fills pools
        if not rest:
            return {"explanations": 0}
        return {"explanations": len(rest), "median_ms": 1e3 * float(np.median(rest)), "most_ms": 1e3 * max(rest)}

    @property
    def _task(self) -> Split:
        return self.run.data.valid if self._split == "valid" else self.run.data.test

    def _cases(self, run: Run, queries: NDArray[np.int32]) -> Iterator[Case]:
        observed = with_paths(run.bind(self._task.observed, self._task.entities))
        for h, r, t in draw_questions(queries, self._count, self._seed).tolist():
            yield open_case(observed, h, r, t, remove_rule(run))


def remove_rule(run: Run) -> Remove:
    """What the run hides of a triple that the graph has."""
    return "pair" if run.settings.training.remove == "pair" else "triple"


def draw_questions(queries: NDArray[np.int32], count: int, seed: int) -> NDArray[np.int32]:
    """Some of the triples, at random."""
    return queries[np.random.default_rng(seed).permutation(len(queries))[:count]]


if __name__ == "__main__":
    main()
