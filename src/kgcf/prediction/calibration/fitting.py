"""Calibration: from the logit of an answer to the probability that it is true, fitted on validation.

A curve serves the answers that a path reaches: Platt's, isotonic, or one with an intercept for every relation and
direction, whichever cross-validation prefers. Unreached answers have logits of another
head, or none worth the name, and stand below every reached one in a ranking: they share one probability, the
rate measured for them, and no reached answer gets less. So probabilities never contradict ranks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kgcf.prediction.calibration.by_relation import SPREADS, fit_by_relation
from kgcf.prediction.calibration.curves import FITS, Curve, Floats, curve_from_json, sigmoid, soft_targets
from kgcf.prediction.calibration.link_curves import LinkCurve, link_curve_from_json
from kgcf.prediction.calibration.ranked_answers import RankedAnswers
from kgcf.prediction.calibration.reliability import Reliability, measure

Method = Literal["sigmoid", "platt", "isotonic", "relation", "completion"]
Fitted = Literal["platt", "isotonic", "relation"]
GIVEN = "the question has an answer that is not observed"
METHODS: tuple[Fitted, ...] = ("platt", "isotonic", "relation")  # the first wins a tie
LEAST_ANSWERS = 20
SCARCELY = 1e-9  # where nothing was fitted: the most that an answer gets which no path reaches
FOLDS = 5


@dataclass(frozen=True)
class FittedCurve:
    """A curve with what the unreached get, which is also the least that the reached get."""

    curve: Curve | LinkCurve
    unreached: float

    def __call__(self, logits: Floats, reached: NDArray[np.bool_], relations: NDArray[np.int64]) -> Floats:
        """Probabilities of the same shape."""
        return np.where(reached, np.maximum(_along(self.curve, logits, relations), self.unreached), self.unreached)


def _along(curve: Curve | LinkCurve, logits: Floats, relations: NDArray[np.int64]) -> Floats:
    """What a curve says of reached answers."""
    return curve(logits, relations) if isinstance(curve, LinkCurve) else curve(logits)


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

    def probabilities(
        self, logits: Floats, reached: NDArray[np.bool_], relations: NDArray[np.int64], method: Method | None = None
    ) -> Floats:
        """Of the same shape as the logits; in a question they never fall as logits rise or ranks improve.

        `relations` are those of the questions: of one that asks for heads the inverse one. Where the run has nothing
        but sigmoids, an answer that no path reaches gets next to nothing, for it stands below every reached one;
        `method="sigmoid"` are the plain ones of all logits, to compare a calibration with.
        """
        chosen = method or self.method
        if chosen == "sigmoid":
            plain = sigmoid(logits)
            return plain if method else np.where(reached, plain, SCARCELY * plain)
        return self.curves[chosen](logits, reached, relations)

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
            name: FittedCurve(_curve_from_json(name, given), float(given["unreached"]))
            for name, given in values["parameters"].items()
        }
        method = values["method"]
        if method != "sigmoid" and method not in curves:
            raise KeyError(method)
        return cls(method, str(values["reason"]), curves, dict(values["cross_validation"]))


def _curve_from_json(name: str, values: dict[str, Any]) -> Curve | LinkCurve:
    return link_curve_from_json(values) if name == "relation" else curve_from_json(name, values)


UNCALIBRATED = Calibration("sigmoid", "The run has no calibration: probabilities are the plain sigmoid of the logit.")


def fit_calibration(answers: RankedAnswers, seed: int = 0) -> Calibration:
    """Fit all curves; the one with the lowest cross-validated Brier score is used, the simpler if they are equal.

    The curve by relation is used only where its gain is larger than its standard error.

    Without validation answers, with fewer than 20 reached ones, or with only true or only false ones among
    them, nothing can be fitted: the sigmoid stays, and the reason says why.
    """
    problem = _problem(answers)
    if problem:
        return Calibration("sigmoid", f"{problem} So probabilities are the plain sigmoid of the logit.")
    errors, spread = cross_validate(answers, seed)
    curves = {str(name): fit_curve(answers, name, spread) for name in METHODS}
    scores = {name: float(error.mean()) for name, error in errors.items()}
    best = _chosen(errors, answers.questions)
    return Calibration(best, _reason(best, {name: scores[name] for name in METHODS}), curves, scores)


def fit_curve(answers: RankedAnswers, method: Fitted, spread: float = 0.0) -> FittedCurve:
    """A curve through the reached answers and the rate of the unreached, made to agree.

    The rate of the unreached is the mean of their soft targets, so that a few false ones do not say never;
    where validation has none, they get the lowest probability that a reached answer has. If the rate lies
    above low probabilities of reached answers, these are pooled with it, as isotonic regression does.
    """
    reached, unreached = answers.where(answers.reached), answers.where(~answers.reached)
    plain = method != "relation"
    curve = FITS[method](reached.logits, reached.labels) if plain else fit_by_relation(reached, spread)
    fitted_probabilities = np.sort(_along(curve, reached.logits, reached.relations))
    if not len(unreached):
        return FittedCurve(curve, float(fitted_probabilities[0]))
    total = soft_targets(unreached.labels).sum() + np.cumsum([0.0, *fitted_probabilities])
    pooled = total / (
        len(unreached) + np.arange(len(fitted_probabilities) + 1)
    )  # with the 0, 1, 2, … lowest of the reached
    above = pooled[:-1] <= fitted_probabilities  # the pool is not above the next probability
    return FittedCurve(curve, float(pooled[np.argmax(above)] if above.any() else pooled[-1]))


def cross_validate(answers: RankedAnswers, seed: int) -> tuple[dict[str, Floats], float]:
    """[A] squared errors of the sigmoid and of each method fitted on other questions; and how far relations differ.

    Answers of a question stay together.
    """
    questions, position = np.unique(answers.questions, return_inverse=True)
    fold = (np.random.default_rng(seed).permutation(len(questions)) % FOLDS)[position]
    tried = {spread: _held_out(answers, fold, "relation", spread) for spread in SPREADS}
    spread = min(SPREADS, key=lambda s: float(tried[s].mean()))
    errors = {
        "sigmoid": np.square(sigmoid(answers.logits) - answers.labels),
        "platt": _held_out(answers, fold, "platt"),
        "isotonic": _held_out(answers, fold, "isotonic"),
        "relation": tried[spread],
    }
    return errors, spread


def _held_out(answers: RankedAnswers, fold: NDArray[np.int64], method: Fitted, spread: float = 0.0) -> Floats:
    """[A] squared errors of a method that is fitted on the other folds."""
    errors = np.empty(len(answers))
    for k in np.unique(fold):
        inside, outside = answers.where(fold == k), answers.where(fold != k)
        if outside.reached.any():
            given = fit_curve(outside, method, spread)(inside.logits, inside.reached, inside.relations)
        else:
            given = np.full(len(inside), outside.base_rate)
        errors[fold == k] = np.square(given - inside.labels)
    return errors


def _reason(best: Fitted, scores: Mapping[str, float]) -> str:
    """Why this method, as a sentence."""
    others = ", ".join(f"{score:.5f} ({name})" for name, score in scores.items() if name != best)
    compared = f"in {FOLDS}-fold cross-validation over questions: {scores[best]:.5f} against {others}"
    if min(scores.values()) < scores[best]:
        return f"{best} has the Brier score {compared}; what that gains is within chance."
    return f"{best} has the lowest Brier score {compared}."


def _chosen(errors: Mapping[str, Floats], questions: NDArray[np.int64]) -> Fitted:
    """The method of least squared error; by relation only where that is more than chance, question by question."""
    plain: Fitted = "platt" if errors["platt"].mean() <= errors["isotonic"].mean() else "isotonic"
    _, question = np.unique(questions, return_inverse=True)
    gain = np.bincount(question, errors[plain] - errors["relation"])
    return "relation" if gain.mean() > gain.std() / np.sqrt(len(gain)) else plain


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
            name: measure(
                calibration.probabilities(answers.logits, answers.reached, answers.relations, method), answers.labels
            )
            for name, method in ((name, None if name == calibration.method else name) for name in methods)
        },
    )
