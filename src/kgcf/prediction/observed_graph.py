"""KGCF at work on one observed graph: scores of all entities, and exact logits of chosen candidates."""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from kgcf.causal.treatment import Treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
from kgcf.data.vocabulary import Vocabulary
from kgcf.machine import memory_bound as bound
from kgcf.model.kgcf import KGCF
from kgcf.model.scorer import GraphScorer
from kgcf.prediction.answer_logits import AnswerLogits
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.blending.ensemble import EnsembleScorer
from kgcf.prediction.blending.recall import Recall
from kgcf.prediction.blending.scorer import BlendedScorer
from kgcf.prediction.calibration.fitting import UNCALIBRATED, Calibration
from kgcf.propagation.layers.sparse import budget_for
from kgcf.propagation.plan.planner import Planner


@dataclass(frozen=True, eq=False)
class Companions:
    """Other runs on the same graph, which answer together with this one."""

    others: tuple["ObservedGraph", ...] = field(repr=False)
    weights: tuple[float, ...]  # of this run and of the others
    names: tuple[str, ...]  # of this run and of the others

    @property
    def answering(self) -> tuple[str, ...]:
        """This run, then those of the others that change an answer: validation may have given some no weight."""
        others = zip(self.names[1:], self.weights[1:], strict=True)
        return (self.names[0], *(name for name, weight in others if weight))


class ObservedGraph(AnsweringGraph):
    """Binds KGCF to a graph and its treatment, with memory and other runs beside it where there are any."""

    def __init__(
        self,
        model: KGCF,
        graph: KnowledgeGraph,
        entities: Vocabulary,
        relations: Vocabulary,
        treatment: Treatment | None,
        threads: int | None = None,
        calibration: Calibration = UNCALIBRATED,
        train: KnowledgeGraph | None = None,
        memory: float = bound.DEFAULT,
        recall: Recall | None = None,
        companions: "Companions | None" = None,
        paths_calibration: Calibration | None = None,
    ) -> None:
        super().__init__(graph, entities, relations, calibration, train, memory, paths_calibration)
        self.model = model
        self.treatment = treatment
        self.recall = recall  # None: no memory has a say about these entities
        self.companions = companions  # None: this model alone
        self._threads = threads

    def for_another_thread(self, threads: int | None = 1) -> "ObservedGraph":
        """The same with workspaces of its own: two threads must not compute on one."""
        other = copy(self)
        for kept in ("scorer", "own_scorer", "paths", "planner"):
            other.__dict__.pop(kept, None)
        other._threads = threads
        if self.companions is not None:
            beside = tuple(each.for_another_thread(threads) for each in self.companions.others)
            other.companions = replace(self.companions, others=beside)
        return other

    @cached_property
    def scorer(self) -> GraphScorer | BlendedScorer | EnsembleScorer:
        """Ranks every entity, by paths and, where there are any, by memory and by the runs beside this one."""
        if self.companions is None:
            return self.own_scorer
        members = (_Alone(self), *(_Alone(other) for other in self.companions.others))
        return EnsembleScorer(members, self.companions.weights, self.companions.names)

    @cached_property
    def own_scorer(self) -> GraphScorer | BlendedScorer:
        """Ranks every entity by this run alone."""
        return self.paths if self.recall is None else BlendedScorer(self.paths, self.recall)

    @cached_property
    def paths(self) -> GraphScorer:
        """Ranks every entity by paths alone."""
        treated = None if self.treatment is None else self.treatment.treated
        return GraphScorer(self.model, self.graph, treated, self._threads, self.memory)

    @cached_property
    def planner(self) -> Planner:
        """Plans questions about chosen candidates."""
        encoder = self.model.encoder.settings
        return Planner(self.graph, encoder.layers, everybody=encoder.everybody)

    def logits(
        self,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        candidates: NDArray[np.int64],
        hidden: HiddenTriples | None = None,
        treated: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """[B, K] logits of candidates by paths alone, and whether a path reaches them; `hidden` triples are not seen.

        The candidates' treatment is that of the graph without the hidden triples, unless it is given.
        """
        if treated is None and self.treatment is not None:
            treated = self.treatment.treated(heads, relations, candidates, hidden)
        logits, reached = np.empty(candidates.shape), np.empty(candidates.shape, dtype=bool)
        budget = budget_for(self.model.encoder, self.memory)
        for plan in self.planner.parts(heads, relations, candidates, hidden, budget):
            rows = slice(plan.first, plan.first + len(plan))
            with torch.no_grad():
                evidence = self.model.encode(plan)
                found = self.model.decode(evidence, None if treated is None else torch.from_numpy(treated[rows]))
            logits[rows], reached[rows] = found.cpu().double().numpy(), evidence.reached.cpu().numpy()
        return logits, reached

    def answer_logits(
        self,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        candidates: NDArray[np.int64],
        hidden: HiddenTriples | None = None,
    ) -> AnswerLogits:
        """What paths and memory together say of candidates [B, K]; the logits by which they are ranked.

        A fact that is hidden from its own question was not hidden from memory when it was trained: about such a
        candidate memory is not asked.
        """
        logits, reached = self.logits(heads, relations, candidates, hidden)
        parts, heard = self.memory_parts(heads, relations, candidates, hidden)
        own = AnswerLogits(logits + self.moved(heard, reached) + parts, reached, heard)
        if self.companions is None:
            return own
        return _joined(own, self.companions, (heads, relations, candidates), hidden)

    def memory_parts(
        self,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        candidates: NDArray[np.int64],
        hidden: HiddenTriples | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """[B, K], [B, K] what memory adds to the logits of candidates, and whether it was asked about them."""
        if self.recall is None:
            return np.zeros(candidates.shape), np.zeros(candidates.shape, dtype=bool)
        heard = np.broadcast_to(self.recall.speaks(heads, relations)[:, None], candidates.shape).copy()
        parts = self.recall.parts(heads, relations, candidates).astype(np.float64)
        if hidden is not None:
            rows = np.flatnonzero(np.diff(hidden.offsets) > 0)
            by_heart = self.train.find_edges(
                np.repeat(heads[rows], candidates.shape[1]),
                np.repeat(relations[rows], candidates.shape[1]),
                candidates[rows].ravel(),
            ).reshape(-1, candidates.shape[1])
            heard[rows] &= by_heart < 0
            parts[~heard] = 0
        return parts, heard

    def moved(self, heard: NDArray[np.bool_], reached: NDArray[np.bool_]) -> NDArray[np.float64]:
        """[…] what unreached candidates lose where memory has a say."""
        lost = 0.0 if self.recall is None else self.recall.blend.unreached
        return np.where(heard & ~reached, lost, 0.0)

    @property
    def _every(self) -> tuple["ObservedGraph", ...]:
        """This run and those beside it."""
        return (self,) if self.companions is None else (self, *self.companions.others)

    @property
    def remembers(self) -> bool:
        """Whether any memory can have a say here."""
        return any(each.recall is not None for each in self._every)

    def hears(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[B] whether any memory has a say in a question."""
        heard = np.zeros(len(heads), dtype=bool)
        for each in self._every:
            if each.recall is not None:
                heard |= each.recall.speaks(heads, relations)
        return heard

    def without_memory(self) -> "ObservedGraph":
        """The same by paths alone."""
        other = self.for_another_thread(self._threads)
        other.recall = None
        if other.companions is not None:
            beside = tuple(each.without_memory() for each in other.companions.others)
            other.companions = replace(other.companions, others=beside)
        return other

    def logits_of_ranked(
        self,
        head: int,
        relation: int,
        found: NDArray[np.int64],
        scores: NDArray[np.float32],
        reached: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """[K] logits of some answers to one question, from its ranking scores [N].

        The score of a reached entity is its logit; that of an unreached one may have been moved below the
        reached ones, so its logit is computed. Where memory has a say, every score is a logit.
        """
        logits = scores[found].astype(np.float64)
        if self.companions is not None:
            together: NDArray[np.float64] = self.answer_logits(
                np.array([head]), np.array([relation]), found[None, :]
            ).logits[0]
            return together
        if self.recall is not None and self.recall.speaks(np.array([head]), np.array([relation]))[0]:
            return logits
        moved = found[~reached[found]]
        if len(moved):
            logits[~reached[found]] = self.logits(np.array([head]), np.array([relation]), moved[None, :])[0][0]
        return logits


def with_paths(bound: AnsweringGraph) -> ObservedGraph:
    """The same graph where KGCF is known to answer: baselines are refused before anybody asks for their paths."""
    assert isinstance(bound, ObservedGraph)
    return bound


@dataclass(frozen=True, eq=False)
class _Alone:
    """One run of several, without the others."""

    observed: ObservedGraph

    def score_supported(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
        """As the run alone would score."""
        scores, reached = self.observed.own_scorer.score_with_reach(heads, relations)
        return scores, reached, self.observed.supported(heads, relations, reached)


def _joined(
    own: AnswerLogits,
    companions: Companions,
    asked: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    hidden: HiddenTriples | None,
) -> AnswerLogits:
    """What several runs say together: their logits added by weight; reached or supported by any."""
    found = [own, *(other.answer_logits(*asked, hidden) for other in companions.others)]
    return AnswerLogits(
        np.sum([weight * each.logits for weight, each in zip(companions.weights, found, strict=True)], axis=0),
        np.logical_or.reduce([each.reached for each in found]),
        np.logical_or.reduce([each.heard for each in found]),
    )
