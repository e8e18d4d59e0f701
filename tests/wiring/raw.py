"""What the raw files say, and what a model says about them: loops over labels, without the wiring under test."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from kgcf.causal.treatment import assign_treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.propagation.plan.planner import Planner
from kgcf.runs.run import Run

Triple = tuple[str, str, str]
Opinion = tuple[bool, float]  # whether a path reaches the answer, and its logit
CLOSE = 1e-5  # logits that differ by less are equal: the ranking computes in single precision


def read_rows(path: Path) -> list[Triple]:
    """The triples of one file, in its order."""
    with path.open(encoding="utf-8", newline="") as file:
        return [(h, r, t) for h, r, t in csv.reader(file, delimiter="\t")]


@dataclass(frozen=True)
class RawFiles:
    """train.txt, valid.txt and test.txt of a folder, as labels."""

    folder: Path

    @cached_property
    def train(self) -> list[Triple]:
        return read_rows(self.folder / "train.txt")

    @cached_property
    def valid(self) -> list[Triple]:
        return read_rows(self.folder / "valid.txt")

    @cached_property
    def test(self) -> list[Triple]:
        return read_rows(self.folder / "test.txt")

    @property
    def all(self) -> set[Triple]:
        return {*self.train, *self.valid, *self.test}

    @cached_property
    def entities(self) -> list[str]:
        return sorted({end for h, _, t in self.all for end in (h, t)})

    @cached_property
    def relations(self) -> list[str]:
        return sorted({r for _, r, _ in self.all})


class Oracle:
    """Asks the model of a run about single questions, on a graph made of the triples it may see."""

    def __init__(self, run: Run, seen: Iterable[Triple]) -> None:
        self._run = run
        self._entities, self._relations = run.data.test.entities, run.data.relations
        rows = [(self._entities.id(h), self._relations.id(r), self._entities.id(t)) for h, r, t in seen]
        triples = np.array(rows, dtype=np.int32).reshape(-1, 3)
        self.graph = KnowledgeGraph.build(triples, len(self._entities), len(self._relations))
        self._treatment = None
        if run.settings.decoder.treatment:
            settings = run.settings.treatment
            self._treatment = assign_treatment(self.graph, settings, entities=self._entities, relations=self._relations)
        self._answers: dict[tuple[str, str, bool], dict[str, Opinion]] = {}

    def answers(self, given: str, relation: str, asked: str = "tail") -> dict[str, Opinion]:
        """What the model thinks of every entity as the tail of (given, relation, ?), or as its head if asked."""
        key = given, relation, asked == "tail"
        if key not in self._answers:
            number = self._relations.id(relation) + (0 if asked == "tail" else len(self._relations))
            heads, relations = np.array([self._entities.id(given)]), np.array([number])
            everybody = np.arange(len(self._entities))[None, :]
            plan = Planner(self.graph, self._run.settings.encoder.layers).plan(heads, relations, everybody)
            treated = None
            if self._treatment is not None:
                treated = torch.from_numpy(self._treatment.treated(heads, relations, everybody))
            with torch.no_grad():
                evidence = self._run.model.encode(plan)
                logits = self._run.model.decode(evidence, treated)
            found = zip(evidence.reached[0].tolist(), logits[0].tolist(), strict=True)
            self._answers[key] = dict(zip(self._entities.labels(), found, strict=True))
        return self._answers[key]

    def treated(self, triple: Triple) -> bool:
        """T of one triple on this graph."""
        assert self._treatment is not None
        head, relation, tail = triple
        ids = [[self._entities.id(head), self._relations.id(relation), self._entities.id(tail)]]
        return bool(self._treatment.treated_triples(ids)[0])


def rank(oracle: Oracle, triple: Triple, asked: str, truths: set[Triple]) -> tuple[int, int]:
    """How many candidates beat the answer and how many tie with it; other truths do not count."""
    head, relation, tail = triple
    given, answer = (head, tail) if asked == "tail" else (tail, head)
    opinions = oracle.answers(given, relation, asked)
    better = equal = 0
    for other, (reached, logit) in opinions.items():
        claim = (head, relation, other) if asked == "tail" else (other, relation, tail)
        if other == answer or claim in truths:
            continue
        own_reached, own_logit = opinions[answer]
        if reached == own_reached and abs(logit - own_logit) < CLOSE:
            equal += 1
        elif (reached, logit) > (own_reached, own_logit):
            better += 1
    return better, equal


def reciprocal_ranks(
    oracle: Oracle, triples: Iterable[Triple], truths: set[Triple], ties: str = "realistic"
) -> list[float]:
    """1 / rank of the tail and of the head of every triple; ties count half, or not at all if `optimistic`."""
    share = {"realistic": 0.5, "optimistic": 0.0}[ties]
    counted = [rank(oracle, triple, asked, truths) for triple in triples for asked in ("tail", "head")]
    return [1 / (1 + better + share * equal) for better, equal in counted]
