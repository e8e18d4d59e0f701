"""Weights of triples: positive numbers, kept for every split; anything else is refused with its place."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgcf.errors import DataError

Weights = NDArray[np.float32]

_ADVICE = (
    "A weight multiplies the triple's messages and must be a positive number (1 is as good as none); "
    "leave a triple out if it does not hold."
)


def check_weight(value: object, where: str) -> None:
    """Refuse a weight that is no number, not finite, or not above 0; `where` is its file and line."""
    try:
        with np.errstate(over="ignore"):
            number = np.float32(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: the weight '{value}' is not a number. {_ADVICE}") from error
    if not np.isfinite(number):
        raise DataError(f"{where}: the weight '{value}' is not a finite number. {_ADVICE}")
    if number <= 0:
        raise DataError(f"{where}: the weight '{value}' is not above 0. {_ADVICE}")


def first_refused(weights: Weights) -> int | None:
    """The position of the first weight that `check_weight` would refuse."""
    refused = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    return int(refused[0]) if len(refused) else None


def join_weights(parts: Sequence[Weights | None], counts: Sequence[int]) -> Weights | None:
    """One array for several tables: 1 for the triples of a table without weights; None if no table has any."""
    if all(part is None for part in parts):
        return None
    filled = [np.ones(n, np.float32) if part is None else part for part, n in zip(parts, counts, strict=True)]
    return np.concatenate(filled)
