"""What the model says of a triple under some condition: without a path, on a path alone, with no evidence."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST = 0.05  # of the logit: what moves the score by less does not move it
BELOW = 1.0  # of the logit: what an answer loses at least that no path reaches any more, as in rankings
_POINT, _TENTH = 0.01, 0.1  # a probability rises noticeably by a hundredth, a small one by a tenth of itself


@dataclass(frozen=True)
class Outcome:
    """A score, the probability that predictions would show for it, and whether any path leads to the answer."""

    logit: float
    probability: float
    reached: bool


@dataclass(frozen=True)
class PathEffect:
    """What one path does for the score."""

    drop: float  # by how much the logit falls without its edges (`Case.fall_to`); negative: it rises
    without: Outcome  # on the graph without its edges
    alone: Outcome  # on the graph of this path alone
    together: Outcome  # without its edges and those of all paths shown before it

    @property
    def against(self) -> bool:
        """Whether the score rises without the path, however little: then it is no reason."""
        return self.drop < 0

    @property
    def needed(self) -> bool:
        """Whether the score falls noticeably without this path alone; if not, others say the same."""
        return self.drop >= LEAST


@dataclass(frozen=True)
class Carried:
    """How much of the answer the paths shown carry together."""

    alone: Outcome  # on the graph of these paths alone
    without: Outcome  # on the graph without them
    nothing: Outcome  # with no evidence: as if no path led to the answer


def rises(before: float, after: float) -> bool:
    """Whether people would say that a probability has risen."""
    return after > before + min(_POINT, _TENTH * before)


def outcomes(
    logits: NDArray[np.float64], probabilities: NDArray[np.float64], reached: NDArray[np.bool_]
) -> tuple[Outcome, ...]:
    """Scores [Q] as outcomes."""
    return tuple(
        Outcome(float(logit), float(probability), bool(met))
        for logit, probability, met in zip(logits, probabilities, reached, strict=True)
    )
