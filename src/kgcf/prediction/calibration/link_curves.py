"""Probabilities of proposed links: one rising curve for all relations, and an intercept for each, shrunk to none.

    log-odds(link is true) = curve(logit) + intercept[group]

The curve is made of straight pieces that rise, and is flat where fewer than `LEAST_CASES` proposals lie beyond. A
group is a relation (and, where entities never seen on a side may stand there, whether they were). Intercepts are
drawn to 0, as from a normal distribution around it: a handful of cases moves one little, and a group without cases
is like the whole. How far relations may spread, cross-validation over questions decides.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.errors import StorageError
from kgcf.prediction.calibration.curves import Floats, between_knots, sigmoid

LEAST_CASES = 25
SPREADS = (0.0, 0.25, 0.5, 1.0, 2.0)  # standard deviations of intercepts; the first wins a tie: none at all
_BENDING = 10.0  # what a change of slope between two pieces costs, in truths
_FARTHEST = 12.0  # an intercept
_CELLS = 128  # logits are grouped before fitting, finer where they are high
_PLACES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9)  # knots, as quantiles of the true proposals' logits


@dataclass(frozen=True, eq=False)
class Proposals:
    """Links that a completion would propose, one entry per link; some stand for others that were not looked at."""

    questions: NDArray[np.int64] = field(repr=False)  # [A] which question (head, relation, ?) proposes it
    groups: NDArray[np.int64] = field(repr=False)  # [A] below `group_count`
    logits: Floats = field(repr=False)  # [A]
    labels: NDArray[np.bool_] = field(repr=False)  # [A] whether the link is one of the facts held back
    weights: Floats = field(repr=False)  # [A] how many links of the whole completion it stands for, at least 1
    group_count: int

    def __len__(self) -> int:
        return len(self.logits)

    @property
    def true_count(self) -> int:
        """Facts held back that are among them."""
        return int(self.labels.sum())

    @property
    def rate(self) -> float:
        """The share of true links in the whole completion; 0 without any."""
        return float(np.average(self.labels, weights=self.weights)) if len(self) else 0.0


@dataclass(frozen=True)
class LinkCurve:
    """A fitted curve and its intercepts."""

    logits: tuple[float, ...]  # knots, ascending
    log_odds: tuple[float, ...]  # ascending
    intercepts: tuple[float, ...]  # by group; 0 where nothing was learned

    def __call__(self, logits: Floats, groups: NDArray[np.int64]) -> Floats:
        """Probabilities of the same shape; within a group they never fall as logits rise."""
        shared = between_knots(logits, np.array(self.logits), np.array(self.log_odds))
        return sigmoid(shared + np.array(self.intercepts)[groups])

    def to_json(self) -> dict[str, Any]:
        """Knots and intercepts."""
        return {name: list(values) for name, values in vars(self).items()}


def link_curve_from_json(values: dict[str, Any]) -> LinkCurve:
    """What `LinkCurve.to_json` wrote; a falling curve is refused."""
    curve = LinkCurve(*(tuple(float(v) for v in values[name]) for name in LinkCurve.__dataclass_fields__))
    rising = (np.diff(curve.logits) > 0).all() and (np.diff(curve.log_odds) >= 0).all()
    if not (rising and len(curve.logits) == len(curve.log_odds) > 0):
        raise StorageError("The curve by relation of the calibration is not one that kgcf writes: it does not rise.")
    return curve


@dataclass(frozen=True, eq=False)
class Cells:
    """Proposals of one group, one fold and about one logit, added up: all that a fit needs to know."""

    knots: Floats  # [pieces + 1] where the pieces of the curve meet
    groups: NDArray[np.int64]  # [C]
    folds: NDArray[np.int64]  # [C]
    parts: Floats  # [C, pieces] how far the mean logit has come on every piece
    true: Floats  # [C] weight of the true ones
    false: Floats  # [C]
    group_count: int

    def where(self, chosen: NDArray[np.bool_]) -> "Cells":
        """Some of the cells."""
        names = ("groups", "folds", "parts", "true", "false")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})


def add_up(proposals: Proposals, folds: int, generator: np.random.Generator) -> Cells | None:
    """Cells with questions dealt into folds; None where no curve can rise: one logit, or labels all the same.

    Weights are scaled so that a true proposal counts once on average: priors stand against cases, as many as there are.
    """
    knots = _knots(proposals)
    if knots is None:
        return None
    questions, number = np.unique(proposals.questions, return_inverse=True)
    fold = (generator.permutation(len(questions)) % folds)[number]
    weights = proposals.weights * (proposals.true_count / float(proposals.weights[proposals.labels].sum()))
    edges = np.unique(np.quantile(proposals.logits, 1 - np.geomspace(1 / len(proposals), 1, _CELLS)))
    cell = (np.searchsorted(edges, proposals.logits) * proposals.group_count + proposals.groups) * folds + fold
    names, position = np.unique(cell, return_inverse=True)
    total = np.bincount(position, weights).astype(np.float64)
    true = np.bincount(position, weights * proposals.labels).astype(np.float64)
    means = np.bincount(position, weights * proposals.logits) / total
    parts = np.clip((means[:, None] - knots[:-1]) / np.diff(knots), 0, 1) * _lengths(knots)
    groups = names // folds % proposals.group_count
    return Cells(knots, groups, names % folds, parts, true, np.maximum(total - true, 0), proposals.group_count)


def fit_link_curve(cells: Cells, spread: float) -> LinkCurve:
    """The curve and intercepts of least penalised cross-entropy; without spread no intercepts."""
    from scipy.optimize import minimize  # slow to import, and only needed to fit

    pieces, given = cells.parts.shape[1], spread > 0
    odds = (cells.true.sum() + 0.5) / (cells.false.sum() + 0.5)
    start = np.concatenate([[np.log(odds)], np.full(pieces, 0.1), np.zeros(cells.group_count if given else 0)])
    bounds = [(None, None)] + [(0.0, None)] * pieces + [(-_FARTHEST, _FARTHEST)] * (len(start) - 1 - pieces)
    options = {"ftol": 1e-12, "gtol": 1e-7, "maxiter": 1000, "maxfun": 5000}
    found = minimize(_loss, start, (cells, spread), "L-BFGS-B", jac=True, bounds=bounds, options=options).x
    heights = found[0] + np.concatenate([[0.0], np.cumsum(found[1 : 1 + pieces] * _lengths(cells.knots))])
    learned = found[1 + pieces :] if given else np.zeros(cells.group_count)
    return LinkCurve(tuple(cells.knots.tolist()), tuple(heights.tolist()), tuple(learned.tolist()))


def _loss(theta: Floats, cells: Cells, spread: float) -> tuple[float, Floats]:
    """Cross-entropy, what bends cost and what intercepts cost, with its gradient."""
    pieces = cells.parts.shape[1]
    slopes, intercepts = theta[1 : 1 + pieces], theta[1 + pieces :]
    own = intercepts[cells.groups] if len(intercepts) else 0.0
    z = theta[0] + np.einsum("cp,p->c", cells.parts, slopes) + own  # einsum: threads would only wait for each other
    error = (cells.true + cells.false) * sigmoid(z) - cells.true
    total = float((cells.true * np.logaddexp(0, -z) + cells.false * np.logaddexp(0, z)).sum())
    bends = np.diff(slopes)
    steeper = np.einsum("cp,c->p", cells.parts, error)
    steeper[1:] += 2 * _BENDING * bends
    steeper[:-1] -= 2 * _BENDING * bends
    total += _BENDING * float(bends @ bends)
    gradient = np.concatenate([[error.sum()], steeper])
    if not len(intercepts):
        return total, gradient
    total += float(np.square(intercepts / spread).sum()) / 2
    pulled = np.bincount(cells.groups, error, minlength=cells.group_count) + intercepts / spread**2
    return total, np.concatenate([gradient, pulled])


def cross_validate_spreads(cells: Cells) -> dict[float, float]:
    """Log loss of a proposal by spread, each fold of questions said by a fit on the others."""
    total = float(cells.true.sum() + cells.false.sum())
    scores = {}
    for spread in SPREADS:
        lost = 0.0
        for k in np.unique(cells.folds):
            inside = cells.where(cells.folds == k)
            curve = fit_link_curve(cells.where(cells.folds != k), spread)
            steps = np.diff(curve.log_odds) / _lengths(cells.knots)
            shared = curve.log_odds[0] + np.einsum("cp,p->c", inside.parts, steps)
            z = shared + np.array(curve.intercepts)[inside.groups]
            lost += float((inside.true * np.logaddexp(0, -z) + inside.false * np.logaddexp(0, z)).sum())
        scores[spread] = lost / total
    return scores


def flat_curve(proposals: Proposals) -> LinkCurve:
    """One probability for all: their rate, with half a true and half a false one added."""
    true = float(proposals.weights[proposals.labels].sum())
    false = float(proposals.weights[~proposals.labels].sum())
    odds = float(np.log((true + 0.5) / (false + 0.5)))
    return LinkCurve((0.0,), (odds,), (0.0,) * proposals.group_count)


def _knots(proposals: Proposals) -> Floats | None:
    """Where pieces meet: from the lowest logit to the one that `LEAST_CASES` proposals surpass; None: no curve."""
    if not 0 < proposals.true_count < len(proposals):
        return None
    ordered = np.sort(proposals.logits)
    last = float(ordered[max(0, len(ordered) - 1 - LEAST_CASES)])
    inner = np.quantile(proposals.logits[proposals.labels], _PLACES)
    knots = np.unique(np.concatenate([ordered[:1], np.minimum(inner, last), [last]]))
    wide = np.concatenate([[True], np.diff(knots) > 1e-3 * (1e-9 + knots[-1] - knots[0])])
    knots = knots[wide]
    return knots if len(knots) > 1 else None


def _lengths(knots: Floats) -> Floats:
    """[pieces] how much a piece counts: the logits between its knots, in units of the whole span."""
    found: Floats = np.diff(knots) / (knots[-1] - knots[0]) * (len(knots) - 1)
    return found
