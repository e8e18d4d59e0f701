"""What is said about candidates: their logits, and on what evidence."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class AnswerLogits:
    """What is said about candidates [B, K]."""

    logits: NDArray[np.float64] = field(repr=False)
    reached: NDArray[np.bool_] = field(repr=False)  # by a path
    heard: NDArray[np.bool_] = field(repr=False)  # whether memory has a say

    @property
    def supported(self) -> NDArray[np.bool_]:
        """Whether there is any evidence: a path, or memory."""
        return self.reached | self.heard
