"""What answers questions about one observed graph: the contract of KGCF and of baselines alike."""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kgcf.baselines.contract import ReachScorer
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
from kgcf.data.vocabulary import Vocabulary
from kgcf.machine import memory_bound as bound
from kgcf.prediction.answer_logits import AnswerLogits
from kgcf.prediction.calibration.fitting import UNCALIBRATED, Calibration


class AnsweringGraph(ABC):
    """A model bound to a graph; predicting, completing, scoring and calibrating go through here."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        entities: Vocabulary,
        relations: Vocabulary,
        calibration: Calibration = UNCALIBRATED,
        train: KnowledgeGraph | None = None,
        memory: float = bound.DEFAULT,
        paths_calibration: Calibration | None = None,
    ) -> None:
        self.graph = graph
        self.entities = entities
        self.relations = relations
        self.calibration = calibration
        self.paths_calibration = paths_calibration  # of answers in which memory has no say; None: the same
        self.train = train or graph  # whose half-links tell whether an entity was seen on a side of a relation
        self.memory = memory  # bytes that one thread may hold to compute

    @cached_property
    @abstractmethod
    def scorer(self) -> ReachScorer:
        """Ranks every entity."""

    @abstractmethod
    def logits(
        self,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        candidates: NDArray[np.int64],
        hidden: HiddenTriples | None = None,
        treated: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """[B, K] logits of candidates without memory, and whether they are reached; `hidden` triples are not seen."""

    @abstractmethod
    def logits_of_ranked(
        self,
        head: int,
        relation: int,
        found: NDArray[np.int64],
        scores: NDArray[np.float32],
        reached: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """[K] logits of some answers to one question, from its ranking scores [N]."""

    def answer_logits(
        self,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        candidates: NDArray[np.int64],
        hidden: HiddenTriples | None = None,
    ) -> AnswerLogits:
        """The logits by which candidates [B, K] are ranked, and who had a say in them."""
        logits, reached = self.logits(heads, relations, candidates, hidden)
        return AnswerLogits(logits, reached, np.zeros(candidates.shape, dtype=bool))

    @property
    def remembers(self) -> bool:
        """Whether any memory can have a say here."""
        return False

    def hears(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[B] whether any memory has a say in a question."""
        return np.zeros(len(heads), dtype=bool)

    def without_memory(self) -> "AnsweringGraph":
        """The same without what memory says."""
        return self

    def score_supported(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
        """[B, N] scores; whether a path reaches an entity; whether the score is a logit that means something."""
        scores, reached = self.scorer.score_with_reach(heads, relations)
        return scores, reached, self.supported(heads, relations, reached)

    def supported(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64], reached: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """[B, N] whose scores are logits that mean something: a path reaches them, or memory has a say."""
        return reached | self.hears(heads, relations)[:, None]

    @property
    def questions_at_once(self) -> int:
        """How many questions to rank in one go: their scores of all entities are held together."""
        return bound.questions_at_once(self.memory, self.graph.entity_count)

    def calibration_of(self, heard: bool) -> Calibration:
        """How the logit of an answer becomes a probability: memory moves logits, so it depends on who spoke."""
        return self.calibration if heard or self.paths_calibration is None else self.paths_calibration

    def probabilities(
        self,
        relations: NDArray[np.int64],
        logits: NDArray[np.float64],
        reached: NDArray[np.bool_],
        heard: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """[A] probabilities of answers: calibrated where the run has a calibration, else the sigmoid.

        `relations` are those of the questions: of one that asks for heads the inverse one.
        """
        own, alone = (
            self.calibration_of(spoke).probabilities(logits, reached | heard, relations) for spoke in (True, False)
        )
        return np.where(heard, own, alone)

    def half_links(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64], tails: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """[A], [A]: whether train has any triple (h, r, ·), and any (·, r, t)."""
        begin, end = self.train.tail_ranges(heads, relations)
        first, last = self.train.tail_ranges(tails, relations + self.train.relation_count)
        return end > begin, last > first
