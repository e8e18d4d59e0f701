"""The floor: answer with the entities that stand most often on the asked side of the relation."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from kgcf.baselines.contract import Baseline, EpochKeeper, ReachScorer
from kgcf.baselines.settings import BaselineSettings
from kgcf.data.graph import KnowledgeGraph


class FrequencyScorer:
    """score(h, r, t) = number of triples (·, r, t) in the observed graph; the head plays no role."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        shape = (2 * graph.relation_count, graph.entity_count)
        ones = np.ones(graph.edge_count, dtype=np.float32)
        self._counts = csr_matrix((ones, (graph.edge_relations, graph.edge_tails)), shape=shape)

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] how often every entity is a tail of the relation."""
        scores: NDArray[np.float32] = self._counts[relations].toarray()
        return scores

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[B, N] the counts; an entity that was never seen there is not reached."""
        scores = self.score_tails(heads, relations)
        return scores, scores > 0


class Frequency(Baseline):
    """Counting as a model: nothing is learned, its one epoch is empty; it keeps how many triples it has seen."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        super().__init__()
        self.register_buffer("triples", torch.tensor([len(graph)]))

    def fit(self, epochs: EpochKeeper) -> None:
        """Let the epoch pass, so that the floor is validated like any model."""
        going = epochs.remaining > 0
        while going:
            epochs.begin()
            going = epochs.end()

    def scorer(self, graph: KnowledgeGraph, memory: float) -> ReachScorer:
        """Counts of the observed graph."""
        return FrequencyScorer(graph)


def build(
    settings: BaselineSettings, graph: KnowledgeGraph, batch_size: int, learning_rate: float, seed: int
) -> Frequency:
    """There is nothing to set and nothing to draw."""
    return Frequency(graph)
