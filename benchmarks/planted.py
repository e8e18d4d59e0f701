"""Planted rules: generated graphs whose relation `goal` follows a known rule, beside relations that mean nothing.

Every entity has one `a`, to one of few hubs; every hub has one next step, and so on: `goal` is where the rule ends.
Some of the goal triples may be noise: they lead anywhere. Asked are test triples that follow the rule. A path is valid
if its relations reduce to the rule: every `goal` on it stands for the rule, and going back along a step and forward
again changes nothing, for every step is a function.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kgcf
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.paths import Path as GraphPath
from kgcf.explanation.patterns import pattern_of
from kgcf.prediction.observed_graph import with_paths
from kgcf.runs.run import Run
from rivals import RIVALS, removal_paths, rival_paths

ENTITIES, HUBS, NONSENSE, PER_RELATION = 600, 60, 4, 600
ASKED = 60
SETTINGS = ("training.epochs=3", "training.threads=1", "encoder.layers=4")
Step = tuple[str, bool]  # a relation, and whether it is travelled backwards
Word = tuple[Step, ...]


@dataclass(frozen=True)
class Plan:
    """One generated graph."""

    rule: tuple[str, ...]  # the relations whose composition is `goal`
    noise: float  # the share of goal triples that follow no rule
    seed: int

    @property
    def name(self) -> str:
        """For folders and tables."""
        return f"{''.join(self.rule)}-noise{round(100 * self.noise)}-seed{self.seed}"


PLANS = tuple(Plan(rule, noise, 0) for rule in (("a", "b"), ("a", "b", "c")) for noise in (0.0, 0.2))


def generate(plan: Plan) -> dict[str, list[tuple[str, str, str]]]:
    """The splits of a graph: train with everything but a part of the goal triples, valid and test with rule goals."""
    generator = np.random.default_rng(plan.seed)
    triples: list[tuple[int, str, int]] = []
    starts = [*range(ENTITIES)]
    reach = {x: x for x in starts}  # where the rule has led so far
    visited = {x: {x} for x in starts}
    for relation in plan.rule:
        last = relation == plan.rule[-1]
        targets = generator.choice(ENTITIES, HUBS, replace=False)
        step = {y: int(generator.integers(ENTITIES) if last else generator.choice(targets)) for y in {*reach.values()}}
        triples += [(y, relation, z) for y, z in step.items() if y != z]
        reach = {x: step[y] for x, y in reach.items() if step[y] not in visited[x]}
        for x, z in reach.items():
            visited[x].add(z)
    goals = [(x, "goal", z) for x, z in reach.items()]
    noisy = generator.random(len(goals)) < plan.noise
    for i in range(NONSENSE):
        pairs = generator.integers(ENTITIES, size=(PER_RELATION, 2))
        triples += [(int(h), f"nonsense{i}", int(t)) for h, t in pairs if h != t]
    shuffled = generator.permutation(len(goals))
    parts = np.array_split(shuffled, 5)
    held = {"test": parts[0], "valid": parts[1]}
    kept = [(x, g, int(generator.integers(ENTITIES))) if noisy[i] else (x, g, z) for i, (x, g, z) in enumerate(goals)]
    splits = {name: [goals[i] for i in rows if not noisy[i]] for name, rows in held.items()}
    splits["train"] = triples + [kept[i] for rows in parts[2:] for i in rows]
    return {name: [(f"e{h}", r, f"e{t}") for h, r, t in rows] for name, rows in splits.items()}


def train(plan: Plan, folder: Path) -> Run:
    """The run on a generated graph; one that is there already is opened."""
    runs = folder / plan.name
    if (runs / "run" / "run.json").is_file():
        return Run.open(runs / "run")
    data = runs / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name, rows in generate(plan).items():
        (data / f"{name}.txt").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return kgcf.fit(data, runs / "run", preset="nbfnet", changes=SETTINGS)


def reduce_word(word: Word, rule: Sequence[str]) -> Word:
    """Write the rule for every goal, then cancel a step back that is followed by the same step forward."""
    forward = tuple((relation, False) for relation in rule)
    backward = tuple((relation, True) for relation in reversed(rule))
    spelled: list[Step] = []
    for relation, back in word:
        for step in (backward if back else forward) if relation == "goal" else ((relation, back),):
            if spelled and spelled[-1] == (step[0], True) and not step[1]:
                spelled.pop()
            else:
                spelled.append(step)
    return tuple(spelled)


def judge(case: Case, path: GraphPath | None, rule: Sequence[str]) -> str:
    """`planted`: the rule itself; `valid`: a detour that implies the same; else `wrong`."""
    if path is None:
        return "wrong"
    relations, count = case.observed.relations, case.observed.graph.relation_count
    word = tuple((relations.label(r % count), r >= count) for r in pattern_of(path))
    wanted = tuple((relation, False) for relation in rule)
    if word == wanted:
        return "planted"
    return "valid" if reduce_word(word, rule) == wanted else "wrong"


def measure_planted(plan: Plan, folder: Path, split: str = "test") -> dict[str, Any]:
    """How often the first path is the planted rule, for the paths shown and for their rivals."""
    run = train(plan, folder)
    task = run.data.test if split == "test" else run.data.valid
    observed = with_paths(run.bind(task.observed, task.entities))
    cases = [open_case(observed, h, r, t, "triple") for h, r, t in task.queries[:ASKED].tolist()]
    found: dict[str, list[str]] = {}
    for name in ("removal", *RIVALS):
        firsts = [
            next(iter(removal_paths(c, 1) if name == "removal" else rival_paths(c, name, 1)), None) for c in cases
        ]
        found[name] = [judge(case, path, plan.rule) for case, path in zip(cases, firsts, strict=True)]
    return {
        "rule": "·".join(plan.rule),
        "noise": plan.noise,
        "asked": len(cases),
        "mrr": run.evaluate(split).to_json()["mrr"],
        **{
            name: {kind: kinds.count(kind) / len(kinds) for kind in ("planted", "valid", "wrong")}
            for name, kinds in found.items()
        },
    }
