"""Paths and memory as one scorer; where memory has no say, the scores are those of the paths, bit for bit."""

import numpy as np
from numpy.typing import NDArray

from kgcf.memory.memory import Memory
from kgcf.model.all_entities_kernels import put_reached_first
from kgcf.model.scorer import GraphScorer
from kgcf.prediction.blending.recall import AT_ONCE, Recall

PARTS = ("paths alone", "memory alone")


class BlendedScorer:
    """Wraps the scorer of the paths; the contract is the same."""

    parts = PARTS

    def __init__(self, paths: GraphScorer, recall: Recall) -> None:
        self._paths = paths
        self._recall = recall

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] scores for ranking."""
        return self.score_with_reach(heads, relations)[0]

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[B, N] scores, and whether a path reaches the entity.

        Where memory has a say, a score is a logit, reached or not; elsewhere the reached stand first.
        """
        scores, reached = self._paths.score_with_reach(heads, relations, reached_first=False)
        self._blend(heads, relations, scores, reached)
        return scores, reached

    def score_parts(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> tuple[NDArray[np.float32], ...]:
        """[B, N] scores by paths alone, by memory alone, and by both."""
        both, reached = self._paths.score_with_reach(heads, relations, reached_first=False)
        paths = both.copy()
        put_reached_first(paths, reached)
        self._blend(heads, relations, both, reached)
        memory = MemoryScorer(self._recall.memory, both.shape[1]).score_tails(heads, relations)
        return paths, memory, both

    def _blend(
        self,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        logits: NDArray[np.float32],
        reached: NDArray[np.bool_],
    ) -> None:
        """Make scores of the paths' logits, in place: memory's part where it has a say, else the reached first."""
        heard = self._recall.speaks(heads, relations)
        for number in np.flatnonzero(~heard):
            put_reached_first(logits[number : number + 1], reached[number : number + 1])
        for first in range(0, len(heads), AT_ONCE):
            rows = first + np.flatnonzero(heard[first : first + AT_ONCE])
            self._recall.add(heads[rows], relations[rows], [logits[row] for row in rows], reached[rows])


class MemoryScorer:
    """Memory alone, among N entities: those that it does not know, and every answer it has no say in, score 0."""

    def __init__(self, memory: Memory, entity_count: int) -> None:
        self._memory = memory
        self._entity_count = entity_count

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] opinions."""
        scores = np.zeros((len(heads), self._entity_count), dtype=np.float32)
        heard = np.flatnonzero(self._memory.speaks(heads, relations))
        for first in range(0, len(heard), AT_ONCE):
            part = heard[first : first + AT_ONCE]
            scores[part[:, None], self._memory.known] = self._memory.opinions(heads[part], relations[part])
        return scores
