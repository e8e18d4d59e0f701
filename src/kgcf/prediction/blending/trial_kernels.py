"""The rank of an answer under every weight of memory and every loss of the unreached, in one go over the entities."""

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel

Floats = NDArray[np.float32]


@kernel
def rank_under_all(
    logits: Floats,  # [N] of one question, by paths
    reached: NDArray[np.bool_],  # [N]
    opinion: Floats,  # [N] of memory; 0 of whom it does not know
    rivals: NDArray[np.bool_],  # [N] all but the known answers
    answer: int,
    weights: Floats,  # [W]
    losses: Floats,  # [S]
    ranks: NDArray[np.float64],  # [S, W] filled
) -> None:
    """Realistic ranks by (logit + loss, where unreached) + weight · opinion, in the order in which a blend adds."""
    for w in range(len(weights)):
        weight = weights[w]
        for s in range(len(losses)):
            loss = losses[s]
            own = logits[answer] + (np.float32(0) if reached[answer] else loss) + weight * opinion[answer]
            above, beside = 0, 0
            for entity in range(len(logits)):
                moved = logits[entity] + (np.float32(0) if reached[entity] else loss)
                score = moved + weight * opinion[entity]
                counted = rivals[entity] and entity != answer
                above += counted and score > own
                beside += counted and score == own
            ranks[s, w] = 1.0 + above + beside / 2
