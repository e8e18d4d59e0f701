"""The best answers of many questions, with which of them are true: what calibrations are fitted to."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.prediction.calibration.curves import Floats


@dataclass(frozen=True, eq=False)
class RankedAnswers:
    """The best answers of a number of questions, one entry per answer."""

    questions: NDArray[np.int64] = field(repr=False)  # [A] which question was asked
    relations: NDArray[np.int64] = field(repr=False)  # [A] its relation, inverse ones above the others
    logits: Floats = field(repr=False)  # [A]
    reached: NDArray[np.bool_] = field(repr=False)  # [A] whether a path leads to the answer
    labels: NDArray[np.bool_] = field(repr=False)  # [A] whether it is true
    relation_count: int  # with the inverse ones

    def __len__(self) -> int:
        return len(self.logits)

    @property
    def question_count(self) -> int:
        """Questions that have an answer."""
        return len(np.unique(self.questions))

    @property
    def base_rate(self) -> float:
        """The share of answers that are true; 0 without answers."""
        return float(self.labels.mean()) if len(self) else 0.0

    def where(self, chosen: NDArray[np.bool_]) -> "RankedAnswers":
        """Some of the answers."""
        return RankedAnswers(
            self.questions[chosen],
            self.relations[chosen],
            self.logits[chosen],
            self.reached[chosen],
            self.labels[chosen],
            self.relation_count,
        )
