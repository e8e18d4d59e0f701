"""Curves from logits to probabilities, both monotone: Platt's sigmoid and isotonic regression."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.errors import StorageError

Floats = NDArray[np.float64]


def sigmoid(logits: Floats) -> Floats:
    """σ(x) = 1 / (1 + e⁻ˣ) of any shape; scipy's never falls from one number to the next, as plain formulas do."""
    from scipy.special import expit  # slow to import, and not needed by isotonic curves

    found: Floats = expit(np.asarray(logits, dtype=np.float64))
    return found


@dataclass(frozen=True)
class PlattCurve:
    """p = σ(slope · logit + intercept), slope ≥ 0."""

    slope: float
    intercept: float

    def __call__(self, logits: Floats) -> Floats:
        """Probabilities of the same shape."""
        return sigmoid(self.slope * np.asarray(logits, dtype=np.float64) + self.intercept)

    def to_json(self) -> dict[str, Any]:
        """The parameters."""
        return {"slope": self.slope, "intercept": self.intercept}


@dataclass(frozen=True)
class IsotonicCurve:
    """Straight lines between (logit, probability) knots, constant before the first and after the last."""

    logits: tuple[float, ...]  # ascending
    probabilities: tuple[float, ...]  # ascending

    def __call__(self, logits: Floats) -> Floats:
        """Probabilities of the same shape."""
        return between_knots(logits, np.array(self.logits), np.array(self.probabilities))

    def to_json(self) -> dict[str, Any]:
        """The knots."""
        return {"logits": list(self.logits), "probabilities": list(self.probabilities)}


Curve = PlattCurve | IsotonicCurve


def between_knots(logits: Floats, x: Floats, y: Floats) -> Floats:
    """Straight lines between rising knots (x, y); monotone to the last bit, which plain interpolation is not."""
    given = np.clip(np.asarray(logits, dtype=np.float64), x[0], x[-1])
    if len(x) == 1:
        return np.full(given.shape, y[0])
    left = np.clip(np.searchsorted(x, given, side="right") - 1, 0, len(x) - 2)
    slopes = np.diff(y) / np.diff(x)
    found: Floats = np.minimum(y[left] + slopes[left] * (given - x[left]), y[left + 1])
    return found


def soft_targets(labels: NDArray[np.bool_]) -> Floats:
    """[A] Platt's targets, (P + 1) / (P + 2) for the P true and 1 / (F + 2) for the F false: no curve says never."""
    true = int(labels.sum())
    false = len(labels) - true
    return np.where(labels, (true + 1) / (true + 2), 1 / (false + 2))


def fit_platt(logits: Floats, labels: NDArray[np.bool_]) -> PlattCurve:
    """The curve of least cross-entropy with `soft_targets`; flat where higher logits are not more often true."""
    from scipy.optimize import minimize  # slow to import, and only needed to fit
    from scipy.special import logit

    targets = soft_targets(labels)
    centre, spread = float(logits.mean()), float(logits.std())
    start = float(logit(targets.mean()))
    if spread < 1e-9 * (1 + abs(centre)):
        return PlattCurve(0.0, start)
    x = (logits - centre) / spread

    def loss(parameters: Floats) -> tuple[float, Floats]:
        z = parameters[0] * x + parameters[1]
        error = sigmoid(z) - targets
        return float((np.logaddexp(0, z) - targets * z).mean()), np.array([(error * x).mean(), error.mean()])

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    found = minimize(
        loss, np.array([1.0, start]), jac=True, method="L-BFGS-B", bounds=[(0, None), (None, None)], options=options
    )
    slope = float(found.x[0]) / spread
    return PlattCurve(slope, float(found.x[1]) - slope * centre)


def fit_isotonic(logits: Floats, labels: NDArray[np.bool_]) -> IsotonicCurve:
    """Pool adjacent violators on `soft_targets`; a pool becomes one knot at its mean logit.

    Knots at the means of pools (centred isotonic regression) rather than steps: the curve rises within a
    pool too, so that answers of different logit rarely share a probability.
    """
    from scipy.optimize import isotonic_regression  # slow to import, and only needed to fit

    x, position = np.unique(
        logits.astype(np.float32).astype(np.float64), return_inverse=True
    )  # as the model gives them
    weights = np.bincount(position).astype(np.float64)
    means = np.bincount(position, soft_targets(labels)) / weights
    values = isotonic_regression(means, weights=weights).x
    begin = np.flatnonzero(np.diff(values, prepend=-1.0) > 1e-12)  # pools that differ by rounding alone are one
    centres = np.add.reduceat(x * weights, begin) / np.add.reduceat(weights, begin)
    return IsotonicCurve(tuple(centres.tolist()), tuple(values[begin].tolist()))


FITS: dict[str, Callable[[Floats, NDArray[np.bool_]], Curve]] = {"platt": fit_platt, "isotonic": fit_isotonic}


def curve_from_json(method: str, values: dict[str, Any]) -> Curve:
    """The curve whose `to_json` gave these values; a falling one is refused."""
    if method == "platt":
        curve = PlattCurve(float(values["slope"]), float(values["intercept"]))
        if curve.slope >= 0:
            return curve
    elif method == "isotonic":
        knots = [tuple(float(v) for v in values[name]) for name in ("logits", "probabilities")]
        rising = (np.diff(knots[0]) > 0).all() and (np.diff(knots[1]) >= 0).all()
        if len(knots[0]) == len(knots[1]) > 0 and rising:
            return IsotonicCurve(*knots)
    raise StorageError(f"The {method} curve of the calibration is not one that kgcf writes: it does not rise.")
