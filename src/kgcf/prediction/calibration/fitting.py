"""Calibration: from the logit of an answer to the probability that it is true, fitted on validation.

A curve (Platt or isotonic) serves the answers that a path reaches. Unreached answers have logits of another
head, or none worth the name, and stand below every reached one in a ranking: they share one probability, the
rate measured for them, and no reached answer gets less. So probabilities never contradict ranks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kgcf.prediction.calibration.curves import FITS, Curve, Floats, curve_from_json, sigmoid, soft_targets
from kgcf.prediction.calibration.reliability import Reliability, measure

Method = Literal["sigmoid", "platt", "isotonic", "completion"]
GIVEN = "the question has an answer that is not observed"
METHODS: tuple[Literal["platt", "isotonic"], ...] = ("platt", "isotonic")  # the first wins a tie
LEAST_ANSWERS = 20
FOLDS = 5


@dataclass(frozen=True, eq=False)
class RankedAnswers:
    """The best answers of a number of questions, one entry per answer."""

    questions: NDArray[np.int64] = field(repr=False)  # [A] which question was asked
    logits: Floats = field(repr=False)  # [A]
    reached: NDArray[np.bool_] = field(repr=False)  # [A] whether a path leads to the answer
    labels: NDArray[np.bool_] = field(repr=False)  # [A] whether it is true

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
        return RankedAnswers(self.questions[chosen], self.logits[chosen], self.reached[chosen], self.labels[chosen])


@dataclass(frozen=True)
class FittedCurve:
    """A curve with what the unreached get, which is also the least that the reached get."""

    curve: Curve
    unreached: float

    def __call__(self, logits: Floats, reached: NDArray[np.bool_]) -> Floats:
        """Probabilities of the same shape."""
        return np.where(reached, np.maximum(self.curve(logits), self.unreached), self.unreached)


@dataclass(frozen=True)
class Calibration:
    """How a run turns logits into probabilities, and why so."""

    method: Method
    reason: str  # a sentence: why this method
    curves: Mapping[str, FittedCurve] = field(default_factory=dict)  # both, whichever is used; none for the sigmoid
    cross_validation: Mapping[str, float] = field(default_factory=dict)  # Brier score of each method on held-out folds

    @property
    def given(self) -> str:
        """What its probabilities are conditional on."""
        return "nothing: not calibrated" if self.method == "sigmoid" else GIVEN

    def probabilities(self, logits: Floats, reached: NDArray[np.bool_], method: Method | None = None) -> Floats:
        """Of the same shape as the logits; those of a curve never fall as logits rise or ranks improve."""
        chosen = method or self.method
        if chosen == "sigmoid":
            return sigmoid(logits)
        return self.curves[chosen](logits, reached)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "method": self.method,
            "reason": self.reason,
            "parameters": {
                name: {**fitted.curve.to_json(), "unreached": fitted.unreached} for name, fitted in self.curves.items()
            },
            "cross_validation": dict(self.cross_validation),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Calibration":
        """What `to_json` wrote."""
        curves = {
            name: FittedCurve(curve_from_json(name, given), float(given["unreached"]))
            for name, given in values["parameters"].items()
        }
        method = values["method"]
        if method != "sigmoid" and method not in curves:
            raise KeyError(method)
        return cls(method, str(values["reason"]), curves, dict(values["cross_validation"]))


UNCALIBRATED = Calibration("sigmoid", "The run has no calibration: probabilities are the plain sigmoid of the logit.")


def fit_calibration(answers: RankedAnswers, seed: int = 0) -> Calibration:
    """Fit both curves; the one with the lower cross-validated Brier score is used, Platt's if they are equal.

    Without validation answers, with fewer than 20 reached ones, or with only true or only false ones among
    them, nothing can be fitted: the sigmoid stays, and the reason says why.
    """
    problem = _problem(answers)
    if problem:
        return Calibration("sigmoid", f"{problem} So probabilities are the plain sigmoid of the logit.")
    curves: dict[str, FittedCurve] = {name: fit_curve(answers, name) for name in METHODS}
    scores = cross_validate(answers, np.random.default_rng(seed))
    best = min(METHODS, key=lambda name: scores[name])
    other = METHODS[1 - METHODS.index(best)]
    compared = f"{scores[best]:.5f} against {scores[other]:.5f}"
    reason = f"{best} has the lower Brier score in {FOLDS}-fold cross-validation over questions: {compared}."
    if scores[best] == scores[other]:
        reason = f"Both methods have the same cross-validated Brier score, {scores[best]:.5f}; {best} is simpler."
    return Calibration(best, reason, curves, scores)


def fit_curve(answers: RankedAnswers, method: Literal["platt", "isotonic"]) -> FittedCurve:
    """A curve through the reached answers and the rate of the unreached, made to agree.

    The rate of the unreached is the mean of their soft targets, so that a few false ones do not say never;
    where validation has none, they get the lowest probability that a reached answer has. If the rate lies
    above low probabilities of reached answers, these are pooled with it, as isotonic regression does.
    """
    reached, unreached = answers.where(answers.reached), answers.where(~answers.reached)
    curve = FITS[method](reached.logits, reached.labels)
    fitted_probabilities = np.sort(curve(reached.logits))
    if not len(unreached):
        return FittedCurve(curve, float(fitted_probabilities[0]))
    total = soft_targets(unreached.labels).sum() + np.cumsum([0.0, *fitted_probabilities])
    pooled = total / (
        len(unreached) + np.arange(len(fitted_probabilities) + 1)
    )  # with the 0, 1, 2, … lowest of the reached
    above = pooled[:-1] <= fitted_probabilities  # the pool is not above the next probability
    return FittedCurve(curve, float(pooled[np.argmax(above)] if above.any() else pooled[-1]))


def cross_validate(answers: RankedAnswers, generator: np.random.Generator) -> dict[str, float]:
    """Brier score of the sigmoid and of each method fitted on other questions; answers of a question stay together."""
    questions, position = np.unique(answers.questions, return_inverse=True)
    fold = (generator.permutation(len(questions)) % FOLDS)[position]
    truth = answers.labels.astype(np.float64)
    errors = {"sigmoid": np.square(sigmoid(answers.logits) - truth)}
    for name in METHODS:
        errors[name] = np.empty(len(answers))
        for k in np.unique(fold):
            inside, outside = answers.where(fold == k), answers.where(fold != k)
            if outside.reached.any():
                given = fit_curve(outside, name)(inside.logits, inside.reached)
            else:
                given = np.full(len(inside), outside.base_rate)
            errors[name][fold == k] = np.square(given - truth[fold == k])
    return {name: float(error.mean()) for name, error in errors.items()}


def _problem(answers: RankedAnswers) -> str | None:
    """Why no curve can be fitted, as a sentence."""
    if not len(answers):
        return "There are no validation answers to calibrate with."
    reached = answers.where(answers.reached)
    if len(reached) < LEAST_ANSWERS:
        return f"Validation has {len(reached)} answers that a path reaches, fewer than {LEAST_ANSWERS}."
    if reached.labels.all() or not reached.labels.any():
        kind = "true" if reached.labels.all() else "false"
        return f"All {len(reached):,} validation answers that a path reaches are {kind}."
    return None


@dataclass(frozen=True)
class CalibrationReport:
    """What probabilities are worth on the answers of one split, before (`sigmoid`) and after each method."""

    split: str
    questions: int
    answers: int
    base_rate: float  # the share of true answers
    unreached: int  # answers that no path reaches
    unreached_rate: float  # the share of true ones among them; 0 where there are none
    reliability: Mapping[str, Reliability]  # by method

    @property
    def constant_brier(self) -> float:
        """The Brier score of saying the base rate every time."""
        return self.base_rate * (1 - self.base_rate)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        plain = {name: value for name, value in vars(self).items() if name != "reliability"}
        measured = {name: value.to_json() for name, value in self.reliability.items()}
        return {**plain, "constant_brier": self.constant_brier, "reliability": measured}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "CalibrationReport":
        """What `to_json` wrote."""
        plain = {name: values[name] for name in cls.__dataclass_fields__ if name != "reliability"}
        measured = {name: Reliability.from_json(value) for name, value in values["reliability"].items()}
        return cls(**plain, reliability=measured)


def report_calibration(calibration: Calibration, answers: RankedAnswers, split: str) -> CalibrationReport | None:
    """Measure every method of a calibration on the answers of a split; None where there are no answers."""
    if not len(answers):
        return None
    methods: tuple[Method, ...] = ("sigmoid", *(name for name in METHODS if name in calibration.curves))
    return CalibrationReport(
        split=split,
        questions=answers.question_count,
        answers=len(answers),
        base_rate=answers.base_rate,
        unreached=int((~answers.reached).sum()),
        unreached_rate=answers.where(~answers.reached).base_rate,
        reliability={
            name: measure(calibration.probabilities(answers.logits, answers.reached, name), answers.labels)
            for name in methods
        },
    )
