"""How far probabilities can be believed: expected calibration error over equal-mass bins, Brier score, log loss."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 15
_SMALLEST = 1e-12  # a probability of 0 or 1 that is wrong costs this log loss instead of infinity


@dataclass(frozen=True)
class Bin:
    """Answers of about the same probability."""

    count: int
    probability: float  # the mean of what was said
    rate: float  # the share that is true


@dataclass(frozen=True)
class Reliability:
    """What a set of probabilities is worth against the truth."""

    ece: float  # Σ_b count_b / n · |probability_b − rate_b|
    brier: float  # mean (p − y)²
    log_loss: float  # mean −log of the probability given to what is the case, in nats
    bins: tuple[Bin, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Reliability":
        """What `to_json` wrote."""
        bins = tuple(Bin(int(b["count"]), float(b["probability"]), float(b["rate"])) for b in values["bins"])
        return cls(float(values["ece"]), float(values["brier"]), float(values["log_loss"]), bins)


def measure(probabilities: NDArray[np.float64], labels: NDArray[np.bool_], bins: int = BINS) -> Reliability:
    """ECE, Brier score and log loss of at least one probability [A] against its label [A]."""
    truth = labels.astype(np.float64)
    order = np.argsort(probabilities, kind="stable")
    limits = bin_limits(probabilities[order], bins)
    counts = np.diff(limits)
    stated = np.add.reduceat(probabilities[order], limits[:-1]) / counts
    true = np.add.reduceat(truth[order], limits[:-1]) / counts
    given = np.clip(np.where(labels, probabilities, 1 - probabilities), _SMALLEST, 1)
    return Reliability(
        ece=float((counts * np.abs(stated - true)).sum() / len(truth)),
        brier=float(np.square(probabilities - truth).mean()),
        log_loss=float(-np.log(given).mean()),
        bins=tuple(Bin(int(n), float(p), float(y)) for n, p, y in zip(counts, stated, true, strict=True)),
    )


def bin_limits(ordered: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Where bins of equal mass begin in ascending probabilities, and the end of the last one.

    Equal probabilities are never divided, or the error would depend on their order: a limit that falls
    among them moves to where they end, and a bin that becomes empty by this is left out.
    """
    count = len(ordered)
    wanted = np.arange(1, bins) * count // bins
    moved = np.searchsorted(ordered, ordered[wanted[wanted > 0] - 1], side="right")
    return np.unique(np.concatenate([[0], moved, [count]])).astype(np.int64)
