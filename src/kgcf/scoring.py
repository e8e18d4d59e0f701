"""The contract between models and everything that ranks: scores of all tails, bound to one observed graph."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Scorer(Protocol):
    """Scores every entity as the tail of a query; higher is more likely.

    A head query (?, r, t) is the tail query (t, r + R, ?). Scores must not be NaN; −inf is allowed.
    """

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] scores for B queries (head, relation)."""
        ...


@runtime_checkable
class PartedScorer(Scorer, Protocol):
    """A scorer made of parts, each of which could rank alone."""

    parts: tuple[str, ...]  # their names

    def score_parts(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> tuple[NDArray[np.float32], ...]:
        """[B, N] scores of every part, in the order of their names, and last those of the whole."""
        ...
