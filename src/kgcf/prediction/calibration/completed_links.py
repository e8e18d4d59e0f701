"""The calibration of completed links: what share of such proposals turned out to be facts that were held back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kgcf.choices import Scope as Scope
from kgcf.prediction.calibration.curves import Floats, sigmoid
from kgcf.prediction.calibration.fitting import FOLDS, LEAST_ANSWERS
from kgcf.prediction.calibration.link_curves import (
    SPREADS,
    LinkCurve,
    Proposals,
    add_up,
    cross_validate_spreads,
    fit_link_curve,
    flat_curve,
    link_curve_from_json,
)

GIVEN = "proposed by complete"
MEANING = (
    "The probability of a completed link is the share of such proposals (same relation, same logit) that were among "
    "the facts held back for validation, when train was observed and every question asked, with and without a missing "
    "answer. Every other proposal counted as false, even if it is true and nobody wrote it down, or if test has it: "
    "where much else is missing, it is a lower bound."
)


@dataclass(frozen=True)
class CompletionCalibration:
    """How `complete` turns logits into probabilities, and on what this rests."""

    scope: Scope
    reason: str  # a sentence: how it was fitted, or why it could not be
    curve: LinkCurve | None = None  # None: the plain sigmoid
    facts: Mapping[str, float] = field(default_factory=dict)  # questions, proposals, true ones, rate, spread
    cross_validation: Mapping[str, float] = field(default_factory=dict)  # log loss by spread of the intercepts

    @property
    def method(self) -> Literal["completion", "sigmoid"]:
        """Where a probability comes from, as answers name it."""
        return "sigmoid" if self.curve is None else "completion"

    def groups(
        self, relation: int, head_seen: NDArray[np.bool_] | bool, tail_seen: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """The group of links of a relation by whether their ends were seen on these sides of it."""
        return link_groups(self.scope, relation, head_seen, tail_seen)

    def probabilities(self, logits: Floats, groups: NDArray[np.int64]) -> Floats:
        """Of the same shape as the logits; within a group they never fall as logits rise."""
        if self.curve is None:
            return sigmoid(logits)
        return self.curve(logits, groups)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "scope": self.scope,
            "reason": self.reason,
            "curve": None if self.curve is None else self.curve.to_json(),
            "facts": dict(self.facts),
            "cross_validation": dict(self.cross_validation),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "CompletionCalibration":
        """What `to_json` wrote; a falling curve is refused."""
        curve = None if values["curve"] is None else link_curve_from_json(values["curve"])
        if values["scope"] not in ("seen", "all"):
            raise KeyError(values["scope"])
        return cls(
            values["scope"], str(values["reason"]), curve, dict(values["facts"]), dict(values["cross_validation"])
        )


def link_groups(
    scope: Scope, relation: int, head_seen: NDArray[np.bool_] | bool, tail_seen: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """[A] relation; or, where all entities may stand on both sides, relation and whether each end was seen there."""
    if scope == "seen":
        return np.full(len(tail_seen), relation, dtype=np.int64)
    return 4 * relation + 2 * np.asarray(head_seen, dtype=np.int64) + np.asarray(tail_seen, dtype=np.int64)


def group_count(scope: Scope, relation_count: int) -> int:
    """How many groups there are."""
    return relation_count if scope == "seen" else 4 * relation_count


def uncalibrated(scope: Scope) -> CompletionCalibration:
    """The plain sigmoid."""
    return CompletionCalibration(scope, "Nothing was calibrated: probabilities are the plain sigmoid of the logit.")


def fit_completion(proposals: Proposals, scope: Scope, seed: int = 0) -> CompletionCalibration:
    """Choose by cross-validation over questions how much relations may differ, then fit on everything."""
    questions = len(np.unique(proposals.questions))
    facts = {
        "questions": questions,
        "proposals": len(proposals),
        "true": proposals.true_count,
        "rate": proposals.rate,
    }
    if len(proposals) < LEAST_ANSWERS:
        reason = f"Validation gives {len(proposals)} proposals, fewer than {LEAST_ANSWERS}. "
        return CompletionCalibration(
            scope, reason + "So probabilities are the plain sigmoid of the logit.", None, facts
        )
    cells = add_up(proposals, FOLDS, np.random.default_rng(seed))
    if cells is None:
        true = f"{proposals.true_count:,} of {len(proposals):,} proposals on validation are facts held back"
        reason = f"{true}, and logits do not tell which: one probability for all."
        return CompletionCalibration(scope, reason, flat_curve(proposals), facts)
    scores = cross_validate_spreads(cells)
    best = min(SPREADS, key=lambda spread: scores[spread])
    named = {f"{spread:g}": score for spread, score in scores.items()}
    curve = fit_link_curve(cells, best)
    return CompletionCalibration(scope, _reason(best, scores, questions), curve, {**facts, "spread": best}, named)


def _reason(best: float, scores: Mapping[float, float], questions: int) -> str:
    """How much relations differ, and how that was found out."""
    compared = f"{FOLDS}-fold cross-validation over {questions:,} questions"
    if not best:
        return f"One curve for all relations has the lowest log loss in {compared}: {scores[best]:.5f}."
    return (
        f"An intercept by relation, with a spread of {best:g}, has the lowest log loss in {compared}: "
        f"{scores[best]:.5f} against {scores[0.0]:.5f} with one curve for all."
    )
