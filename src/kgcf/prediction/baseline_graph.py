"""A baseline at work on one observed graph: what `ObservedGraph` is to KGCF."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kgcf.baselines.contract import Baseline, ReachScorer
from kgcf.data.dataset import Dataset
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError
from kgcf.machine import memory_bound as bound
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.calibration.fitting import UNCALIBRATED, Calibration


class BaselineGraph(AnsweringGraph):
    """Binds a baseline to a graph; its score of a tail is its logit."""

    def __init__(
        self,
        baseline: Baseline,
        graph: KnowledgeGraph,
        entities: Vocabulary,
        trained: Dataset,
        calibration: Calibration = UNCALIBRATED,
        train: KnowledgeGraph | None = None,
        memory: float = bound.DEFAULT,
    ) -> None:
        super().__init__(graph, entities, trained.relations, calibration, train, memory)
        self.baseline = baseline
        self._trained = trained.graph
        moved = baseline.knows_entities and entities is not trained.entities
        self._ids = _trained_ids(entities, trained) if moved else None

    @cached_property
    def scorer(self) -> ReachScorer:
        """Ranks every entity."""
        if self._ids is not None:
            return _Renumbered(self.baseline.scorer(self._trained, self.memory), self._ids)
        return self.baseline.scorer(self.graph, self.memory)

    def logits(
        self,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        candidates: NDArray[np.int64],
        hidden: HiddenTriples | None = None,
        treated: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """[B, K] scores of candidates, and whether they are reached; a model that reads the graph sees no `hidden`."""
        logits, reached = np.empty(candidates.shape), np.empty(candidates.shape, dtype=bool)
        for row in range(len(heads)):
            unseen = np.zeros(0, np.int32) if hidden is None else hidden.of(row)
            scorer = self.scorer
            if len(unseen) and not self.baseline.knows_entities:
                scorer = self.baseline.scorer(self.graph.without(self.graph.triples[unseen]), self.memory)
            scores, reach = scorer.score_with_reach(heads[row : row + 1], relations[row : row + 1])
            logits[row], reached[row] = scores[0, candidates[row]], reach[0, candidates[row]]
        return logits, reached

    def logits_of_ranked(
        self,
        head: int,
        relation: int,
        found: NDArray[np.int64],
        scores: NDArray[np.float32],
        reached: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """[K] the scores of some answers, which are their logits."""
        return scores[found].astype(np.float64)


class _Renumbered:
    """A scorer of the train entities on a graph that has some of them, in an order of its own."""

    def __init__(self, scorer: ReachScorer, ids: NDArray[np.int64]) -> None:
        self._scorer, self._ids = scorer, ids

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[B, N] scores and reach in the graph's own numbers."""
        scores, reached = self._scorer.score_with_reach(self._ids[heads], relations)
        return scores[:, self._ids], reached[:, self._ids]

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] scores in the graph's own numbers."""
        return self.score_with_reach(heads, relations)[0]


def _trained_ids(entities: Vocabulary, trained: Dataset) -> NDArray[np.int64] | None:
    """[N] the train numbers of a graph's entities; None where they are the same. A new entity is refused."""
    labels, known = entities.labels(), trained.entities.labels()
    if labels == known[: len(labels)]:
        return None
    numbers = {label: number for number, label in enumerate(known)}
    new = [label for label in labels if label not in numbers]
    if new:
        raise DataError(
            f"This model has vectors for the {len(known):,} entities of {trained.name} that it was trained on, and "
            f"{len(new):,} of the graph's entities are not among them: '{new[0]}' for instance. Ask about the run's "
            "own data, or use a model that reads paths: kgcf, nbfnet, pra, neurallp, drum."
        )
    return np.array([numbers[label] for label in labels], dtype=np.int64)
