"""One triple under examination: what is hidden from it, its treatment, its plan, its logit, its edges' importance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, Remove, hide_known
from kgcf.errors import SettingsError
from kgcf.explanation.alone import plan_alone
from kgcf.explanation.importance import EdgeImportance, Importance, weigh_edges
from kgcf.explanation.lattice import Lattice
from kgcf.explanation.outcome import BELOW, Outcome, outcomes
from kgcf.explanation.paths import (
    LIMIT,
    FoundPaths,
    Layers,
    Path,
    RandomPaths,
    Weighting,
    find_best_paths,
    find_shortest_paths,
)
from kgcf.model.kgcf import Evidence
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.propagation.layers.sparse import budget_for
from kgcf.propagation.plan.planner import Plan


@dataclass(frozen=True, eq=False)
class Case:
    """The question (head, relation, ?) and one answer to it; a relation ≥ R asks for the head of r − R."""

    observed: ObservedGraph = field(repr=False)
    head: int
    relation: int
    tail: int
    known: bool  # whether the observed graph has the triple; then it is hidden
    hidden: HiddenTriples = field(repr=False)  # of one query
    treated: bool | None  # T^F, the hidden triples taken out; None: the model has no treatment
    plan: Plan = field(repr=False)
    importance: Importance
    layers: Layers = "own"  # which importance of an edge a path counts
    attribution: EdgeImportance = "gradient"  # how importance was measured

    @property
    def triple(self) -> tuple[int, int, int]:
        """(h, r, t) with r < R."""
        count = self.observed.graph.relation_count
        if self.relation < count:
            return self.head, self.relation, self.tail
        return self.tail, self.relation - count, self.head

    @property
    def probability(self) -> float:
        """The one that a prediction of this triple shows."""
        return self._outcomes(np.array([self.importance.logit]), np.array([self.importance.reached]))[0].probability

    @property
    def logit(self) -> float:
        """The one by which a prediction of this triple is ranked."""
        return self._outcomes(np.array([self.importance.logit]), np.array([self.importance.reached]))[0].logit

    @cached_property
    def memory_part(self) -> tuple[float, bool]:
        """What memory adds to the logit, and whether it was asked; (0, False) for a run without memory."""
        question = np.array([self.head]), np.array([self.relation]), np.array([[self.tail]])
        parts, heard = self.observed.memory_parts(*question, self.hidden)
        return float(parts[0, 0]), bool(heard[0, 0])

    def answer_logits(self, logits: NDArray[np.float64], reached: NDArray[np.bool_]) -> NDArray[np.float64]:
        """[Q] logits of the answer, if these were those of the paths: memory and other runs say what they say."""
        part, heard = self.memory_part
        own = logits + self.observed.moved(np.full(len(logits), heard), reached) + part
        weight, others, _ = self._beside
        return weight * own + others

    def probabilities(self, logits: NDArray[np.float64], reached: NDArray[np.bool_]) -> NDArray[np.float64]:
        """[Q] probabilities of the answer, if these were the logits of the paths."""
        asked, heard = np.full(len(logits), self.relation), np.full(len(logits), self.heard)
        return self.observed.probabilities(asked, self.answer_logits(logits, reached), reached, heard)

    @property
    def heard(self) -> bool:
        """Whether any memory has a say: this run's, or that of a run beside it."""
        return self.memory_part[1] or self._beside[2]

    @cached_property
    def _beside(self) -> tuple[float, float, bool]:
        """How much this run counts in a blend of several, what the others add, whether their memories have a say."""
        companions = self.observed.companions
        if companions is None:
            return 1.0, 0.0, False
        question = np.array([self.head]), np.array([self.relation]), np.array([[self.tail]])
        said = [other.answer_logits(*question, self.hidden) for other in companions.others]
        own, *weights = companions.weights
        added = float(np.dot(weights, [float(each.logits[0, 0]) for each in said]))
        return own, added, any(bool(each.heard[0, 0]) for each in said)

    @cached_property
    def lattice(self) -> Lattice:
        """The walks from head to tail."""
        return Lattice.of(self.plan)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """[M] what every edge of the lattice counts: its importance in its own layer, or in all layers together.

        A path of l edges takes its i-th edge in layer i. But the head speaks in every layer and states are carried
        on, so the model may take the same steps later: the sum over all layers is how the logit answers, to
        first order, to the weight of the edge.
        """
        return self.importance.values if self.layers == "own" else self.lattice.over_layers(self.importance.values)

    @cached_property
    def random_paths(self) -> RandomPaths:
        """Draws simple paths from head to tail."""
        return RandomPaths(self.lattice, self.values)

    def best_paths(self, top: int, weighting: Weighting = "mean", limit: int = LIMIT) -> FoundPaths:
        """The paths that carry the prediction."""
        return find_best_paths(self.lattice, self.values, top, weighting, limit)

    def shortest_paths(self, top: int) -> tuple[Path, ...]:
        """The shortest paths, a control."""
        return find_shortest_paths(self.lattice, self.values, top)

    @cached_property
    def integrated(self) -> Importance:
        """The importance of every edge by gradients integrated from no messages to all of them."""
        if self.attribution == "integrated":
            return self.importance
        return weigh_edges(self.observed.model, self.plan, _treatment(self.treated), "integrated")

    def logits_under(self, treatments: Sequence[bool]) -> list[float]:
        """The logits under other treatments: the paths say the same, only the decoder hears another T."""
        with torch.no_grad():
            evidence = self.observed.model.encode(self.plan)
            return [float(self.observed.model.decode(evidence, torch.tensor([[t]]))[0, 0]) for t in treatments]

    def logits_without(self, removals: Sequence[NDArray[np.integer]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """[Q] logits after removing sets of triples, and whether a path is left; T stays what it was.

        Messages, degrees and contexts are those of the graph without the triples.
        """
        count = len(removals)
        if not count:
            return np.zeros(0), np.zeros(0, dtype=bool)
        hidden = _hide_more(self.hidden.triples, removals)
        heads, relations = np.full(count, self.head), np.full(count, self.relation)
        treated = None if self.treated is None else np.full((count, 1), self.treated)
        logits, reached = self.observed.logits(heads, relations, np.full((count, 1), self.tail), hidden, treated)
        return logits[:, 0], reached[:, 0]

    def logits_alone(self, sets: Sequence[NDArray[np.integer]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """[Q] logits on the graphs of sets of triples alone, and whether a path leads to the tail; T stays."""
        logits, reached = np.zeros(len(sets)), np.zeros(len(sets), dtype=bool)
        if not sets:
            return logits, reached
        model, graph = self.observed.model, self.observed.graph
        budget = budget_for(model.encoder, self.observed.memory)
        question, depth = (self.head, self.relation, self.tail), model.encoder.settings.layers
        for plan in plan_alone(graph, question, sets, depth, budget):
            rows = slice(plan.first, plan.first + len(plan))
            with torch.no_grad():
                evidence = model.encode(plan)
                found = model.decode(evidence, self._treatments(len(plan)))
            logits[rows], reached[rows] = found[:, 0].cpu().double().numpy(), evidence.reached[:, 0].cpu().numpy()
        return logits, reached

    def without(self, removals: Sequence[NDArray[np.integer]]) -> tuple[Outcome, ...]:
        """What is left of the answer after removing sets of triples: as `logits_without`, memory says what it says."""
        return self._outcomes(*self.logits_without(removals))

    def alone(self, sets: Sequence[NDArray[np.integer]]) -> tuple[Outcome, ...]:
        """The answer on the graphs of sets of triples alone: as `logits_alone`, memory says what it says."""
        return self._outcomes(*self.logits_alone(sets))

    def fall_to(self, outcome: Outcome) -> float:
        """By how much the score falls to that of an outcome; negative: it rises.

        An answer that no path reaches is scored by another head, and stands below every reached one however high that
        score is: to such an outcome the score falls by 1 at least. Where memory or other runs speak too, logits say it.
        """
        lost = self.logit - outcome.logit
        compared = outcome.reached or not self.importance.reached or self.heard or self.observed.companions is not None
        return lost if compared else max(lost, BELOW)

    @cached_property
    def nothing(self) -> Outcome:
        """With no evidence: the tail as if no path led to it; its context, T and memory's part are what they are."""
        model = self.observed.model
        with torch.no_grad():
            found = model.encode(self.plan)
            silent = Evidence(
                torch.zeros_like(found.states), found.queries, torch.zeros_like(found.reached), found.context
            )
            logit = model.decode(silent, self._treatments(1))
        return self._outcomes(logit[:, 0].cpu().double().numpy(), np.array([False]))[0]

    def _outcomes(self, logits: NDArray[np.float64], reached: NDArray[np.bool_]) -> tuple[Outcome, ...]:
        """[Q] what the answer would be, if these were the logits of the paths."""
        return outcomes(self.answer_logits(logits, reached), self.probabilities(logits, reached), reached)

    def _treatments(self, count: int) -> Tensor | None:
        return None if self.treated is None else torch.full((count, 1), self.treated)


def open_case(
    observed: ObservedGraph,
    head: int,
    relation: int,
    tail: int,
    remove: Remove,
    layers: Layers = "own",
    attribution: EdgeImportance = "gradient",
) -> Case:
    """Examine a triple; where the graph has it, it is hidden first by the run's rule, or it would explain itself."""
    if observed.model.encoder.settings.everybody:
        raise SettingsError(
            "This run was trained with encoder.semantics = nbfnet: entities that no path reaches speak too, so paths "
            "do not explain its answers. Train one with encoder.semantics = grounded to explain."
        )
    known = bool(observed.graph.contains([[head, relation, tail]])[0])
    hidden = hide_for_explanation(observed.graph, head, relation, tail, remove)
    heads, relations, candidates = np.array([head]), np.array([relation]), np.array([[tail]])
    treated = None
    if observed.treatment is not None:
        treated = bool(observed.treatment.treated(heads, relations, candidates, hidden)[0, 0])
    plan = observed.planner.plan(heads, relations, candidates, hidden)
    importance = weigh_edges(observed.model, plan, _treatment(treated), attribution)
    return Case(observed, head, relation, tail, known, hidden, treated, plan, importance, layers, attribution)


def hide_for_explanation(graph: KnowledgeGraph, head: int, relation: int, tail: int, remove: Remove) -> HiddenTriples:
    """What the explanation of a triple must not see: nothing where it is not in the graph, else itself or its pair."""
    return hide_known(graph, [head], [relation], [tail], remove)


def _treatment(treated: bool | None) -> Tensor | None:
    return None if treated is None else torch.full((1, 1), treated)


def _hide_more(hidden: NDArray[np.int32], removals: Sequence[NDArray[np.integer]]) -> HiddenTriples:
    """One query per removal, each hiding what the case hides and the triples removed."""
    sets = [np.union1d(hidden, removed).astype(np.int32) for removed in removals]
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    return HiddenTriples(offsets, np.concatenate([np.zeros(0, np.int32), *sets]))
