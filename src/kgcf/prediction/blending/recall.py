"""What a memory adds to the logits of answers: its opinion times the weight of the relation, or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kgcf.memory.memory import Memory
from kgcf.prediction.blending.blend import Blend

AT_ONCE = 64  # questions whose opinions are held together


@dataclass(frozen=True, eq=False)
class Recall:
    """A memory with its weights, for questions about the entities that it was trained on."""

    memory: Memory = field(repr=False)
    blend: Blend

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """[2R] by relation."""
        return np.array(self.blend.weights, dtype=np.float32)

    def speaks(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[B] whether memory has a say in a question: it knows entity and relation, and the weight is not 0."""
        heard: NDArray[np.bool_] = self.memory.speaks(heads, relations) & (self.weights[relations] != 0)
        return heard

    def parts(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64], candidates: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """[B, K] what memory adds to the logits of candidates; 0 where it does not know question or candidate."""
        parts = np.zeros(candidates.shape, dtype=np.float32)
        heard = np.flatnonzero(self.speaks(heads, relations))
        if len(heard):
            opinions = self.memory.opinions(heads[heard], relations[heard])
            places = self.memory.places(candidates[heard])
            chosen = np.take_along_axis(opinions, np.maximum(places, 0), axis=1)
            parts[heard] = np.where(places >= 0, self.weights[relations[heard], None] * chosen, np.float32(0))
        return parts

    def add(
        self,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        logits: Sequence[NDArray[np.float32]],
        reached: NDArray[np.bool_],
    ) -> None:
        """Add memory's part to B rows of logits of all entities, in place; it has a say in all of these questions."""
        opinions, weights = self.memory.opinions(heads, relations), self.weights[relations]
        for row, reach, opinion, weight in zip(logits, reached, opinions, weights, strict=True):
            blend_row(row, reach, self.memory.known, opinion, weight, np.float32(self.blend.unreached))


def blend_row(
    row: NDArray[np.float32],
    reached: NDArray[np.bool_],
    known: NDArray[np.int64],
    opinion: NDArray[np.float32],
    weight: np.float32,
    unreached: np.float32,
) -> None:
    """The formula of the blend for one question, in place: what the unreached lose, and what memory adds."""
    row[~reached] += unreached
    row[known] += weight * opinion
