"""Curves against slow versions; known miscalibration is repaired; awkward cases are defined."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit

from kgcf.errors import StorageError
from kgcf.prediction.calibration.curves import (
    PlattCurve,
    curve_from_json,
    fit_isotonic,
    fit_platt,
    sigmoid,
    soft_targets,
)
from kgcf.prediction.calibration.fitting import (
    METHODS,
    SCARCELY,
    UNCALIBRATED,
    Calibration,
    CalibrationReport,
    Fitted,
    FittedCurve,
    cross_validate,
    fit_calibration,
    fit_curve,
    report_calibration,
)
from kgcf.prediction.calibration.link_curves import LinkCurve
from kgcf.prediction.calibration.ranked_answers import RankedAnswers

RELATIONS = 6
SCORED = st.lists(
    st.tuples(st.sampled_from([-2.0, 0.0, 0.5]) | st.floats(-30, 30, width=32), st.booleans()), min_size=1, max_size=20
)


def answers_of(
    logits: NDArray[np.float64], labels: NDArray[np.bool_], reached: NDArray[np.bool_] | None = None, top: int = 10
) -> RankedAnswers:
    everything = np.ones(len(logits), dtype=bool) if reached is None else reached
    questions = np.arange(len(logits)) // top
    return RankedAnswers(questions, questions % RELATIONS, logits, everything, labels, RELATIONS)


def along(fitted: FittedCurve, answers: RankedAnswers) -> NDArray[np.float64]:
    """What the curve says of answers, all of them taken as reached."""
    if isinstance(fitted.curve, LinkCurve):
        return fitted.curve(answers.logits, answers.relations)
    return fitted.curve(answers.logits)


def drawn(count: int, seed: int, slope: float = 0.3, intercept: float = -1.0) -> RankedAnswers:
    """Logits that say too much: true with σ(slope · logit + intercept)."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(0, 5, count)
    return answers_of(logits, generator.random(count) < expit(slope * logits + intercept))


def isotonic_oracle(logits: NDArray[np.float64], labels: NDArray[np.bool_]) -> list[float]:
    """Value at every distinct logit: max over lower starts of the min over higher ends of the mean target between."""
    targets = soft_targets(labels)
    distinct = sorted(set(logits.tolist()))
    values = []
    for x in distinct:
        lower, higher = [a for a in distinct if a <= x], [b for b in distinct if b >= x]
        values.append(max(min(float(targets[(logits >= a) & (logits <= b)].mean()) for b in higher) for a in lower))
    return values


def test_platt_finds_the_curve_that_made_the_labels() -> None:
    found = fit_platt(*_parts(drawn(40_000, seed=1)))
    assert found.slope == pytest.approx(0.3, abs=0.01)
    assert found.intercept == pytest.approx(-1.0, abs=0.05)


def test_platt_is_at_the_least_cross_entropy() -> None:
    logits, labels = _parts(drawn(300, seed=2))
    logits = logits + 1000  # far from zero
    targets, found = soft_targets(labels), fit_platt(logits, labels)
    error = found(logits) - targets
    assert abs(error.mean()) < 1e-6
    assert abs((error * (logits - 1000)).mean()) < 1e-5


def test_platt_is_finite_where_logits_separate() -> None:
    logits = np.concatenate([np.linspace(-3, -1, 20), np.linspace(1, 3, 20)])
    found = fit_platt(logits, logits > 0)
    assert np.isfinite([found.slope, found.intercept]).all()
    assert 0 < found(np.array([-3.0]))[0] < 0.1


def test_platt_is_flat_where_higher_logits_are_less_often_true() -> None:
    answers = drawn(500, seed=3, slope=-0.5)
    found = fit_platt(*_parts(answers))
    assert found.slope == 0
    assert found(np.array([0.0]))[0] == pytest.approx(soft_targets(answers.labels).mean(), abs=1e-4)
    assert fit_platt(np.full(30, 2.5), np.arange(30) < 10).slope == 0


@given(SCORED)
def test_isotonic_equals_the_min_max_formula(pairs: list[tuple[float, bool]]) -> None:
    logits, labels = np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])
    values = isotonic_oracle(logits, labels)
    found = fit_isotonic(logits, labels)
    pools: list[list[float]] = [[]]
    distinct = sorted(set(logits.tolist()))
    for place, x in enumerate(distinct):
        if place and values[place] > values[place - 1] + 1e-12:
            pools.append([])
        pools[-1] += [x] * int((logits == x).sum())
    assert found.logits == pytest.approx([sum(pool) / len(pool) for pool in pools], rel=1e-9, abs=1e-9)
    assert found.probabilities == pytest.approx(sorted({round(v, 12) for v in values}), abs=1e-9)


@given(SCORED, st.sampled_from(METHODS))
def test_curves_never_fall(pairs: list[tuple[float, bool]], method: Fitted) -> None:
    logits, labels = np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])
    fitted = fit_curve(answers_of(logits, labels), method, 1.0)
    knots = np.concatenate([logits, np.array(getattr(fitted.curve, "logits", [0.0]))])
    near = [np.nextafter(knots, -np.inf), knots, np.nextafter(knots, np.inf), np.linspace(-40, 40, 200)]
    grid = np.sort(np.concatenate(near))
    for relation in range(RELATIONS):
        probabilities = fitted(grid, np.ones(len(grid), dtype=bool), np.full(len(grid), relation))
        assert (np.diff(probabilities) >= 0).all()
        assert ((probabilities >= 0) & (probabilities <= 1)).all()


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_known_miscalibration_is_repaired(method: str) -> None:
    calibration = fit_calibration(drawn(6000, seed=4))
    found = report_calibration(calibration, drawn(6000, seed=5), "test")
    assert found is not None
    before, after = found.reliability["sigmoid"], found.reliability[method]
    assert before.ece > 0.15
    assert after.ece < 0.03
    assert after.brier < before.brier
    assert after.brier < found.constant_brier


def test_calibrated_logits_stay_as_they_are() -> None:
    calibration = fit_calibration(drawn(20_000, seed=6, slope=1, intercept=0))
    grid = np.linspace(-4, 4, 9)
    reached = np.ones(9, dtype=bool)
    assert calibration.probabilities(grid, reached, np.zeros(9, int), "platt") == pytest.approx(expit(grid), abs=0.02)
    assert calibration.probabilities(grid, reached, np.zeros(9, int), "isotonic") == pytest.approx(
        expit(grid), abs=0.06
    )


def test_cross_validation_chooses_what_fits() -> None:
    generator = np.random.default_rng(7)
    logits = generator.normal(0, 3, 8000)
    steps = np.where(logits < -1, 0.02, np.where(logits < 2, 0.5, 0.55))
    stepped = fit_calibration(answers_of(logits, generator.random(8000) < steps))
    assert stepped.method == "isotonic"
    assert stepped.reason.startswith("isotonic has the lowest Brier score in 5-fold cross-validation over questions: ")
    assert [fit_calibration(drawn(5000, seed)).method for seed in range(3)] == ["platt"] * 3


def test_cross_validation_equals_the_loop_and_keeps_questions_together() -> None:
    answers = drawn(230, seed=9)
    answers = replace(answers, questions=answers.questions * 7 + 3, reached=np.arange(230) % 9 > 0)
    questions = sorted(set(answers.questions.tolist()))
    shuffled = np.random.default_rng(3).permutation(len(questions))
    fold_of = {question: shuffled[place] % 5 for place, question in enumerate(questions)}
    found, spread = cross_validate(answers, 3)
    for method in METHODS:
        fitted = {}
        for fold in range(5):
            others = np.array([fold_of[int(q)] != fold for q in answers.questions])
            fitted[fold] = fit_curve(answers.where(others), method, spread)
        total = 0.0
        for i in range(len(answers)):
            curve = fitted[fold_of[int(answers.questions[i])]]
            one = answers.where(np.arange(len(answers)) == i)
            total += (curve(one.logits, one.reached, one.relations)[0] - answers.labels[i]) ** 2
        assert found[method].mean() == pytest.approx(total / len(answers), rel=1e-6)


def test_the_unreached_get_their_own_rate_whatever_their_logit() -> None:
    generator = np.random.default_rng(10)
    reached = drawn(2000, seed=10, slope=1, intercept=2)
    logits = np.concatenate([reached.logits, generator.normal(20, 1, 2000)])  # the other head is very sure
    labels = np.concatenate([reached.labels, generator.random(2000) < 0.01])
    answers = answers_of(logits, labels, np.arange(4000) < 2000)
    calibration = fit_calibration(answers)
    for method in calibration.curves:
        probabilities = calibration.curves[method](logits, answers.reached, answers.relations)
        assert len(set(probabilities[2000:].tolist())) == 1
        assert probabilities[2000] == pytest.approx(labels[2000:].mean(), abs=0.005)
        assert probabilities[:2000].min() >= probabilities[2000:].max()  # as the ranking has them


@given(SCORED, st.lists(st.booleans(), min_size=1, max_size=30), st.sampled_from(METHODS))
def test_the_unreached_are_pooled_with_lower_reached_answers(
    pairs: list[tuple[float, bool]], others: list[bool], method: Fitted
) -> None:
    logits, labels = np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])
    reached = np.arange(len(pairs) + len(others)) < len(pairs)
    mixed = answers_of(np.concatenate([logits, np.zeros(len(others))]), np.concatenate([labels, others]) > 0, reached)
    fitted = fit_curve(mixed, method, 1.0)
    alone = sorted(along(fitted, mixed.where(reached)).tolist())
    true, false = sum(others), len(others) - sum(others)
    pool, weight = true * (true + 1) / (true + 2) + false / (false + 2), len(others)
    while alone and pool / weight > alone[0]:
        pool, weight = pool + alone.pop(0), weight + 1
    assert fitted.unreached == pytest.approx(pool / weight, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_few_false_unreached_answers_do_not_say_never(method: Fitted) -> None:
    answers = drawn(400, seed=11, slope=1, intercept=3)
    reached = np.arange(500) < 400
    logits, labels = np.zeros(500), np.zeros(500, dtype=bool)
    logits[:400], labels[:400] = answers.logits, answers.labels
    lowest = along(fit_curve(answers, method, 0.5), answers).min()
    assert lowest / 2 < fit_curve(answers_of(logits, labels, reached), method, 0.5).unreached <= 1 / 102


def test_without_unreached_answers_they_get_the_lowest_probability() -> None:
    answers = drawn(400, seed=11)
    fitted = fit_curve(answers, "platt")
    assert fitted.unreached == along(fitted, answers).min()


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (answers_of(np.zeros(0), np.zeros(0, dtype=bool)), "There are no validation answers to calibrate with."),
        (drawn(19, seed=0), "Validation has 19 answers that a path reaches, fewer than 20."),
        (
            answers_of(np.arange(40.0), np.ones(40, dtype=bool)),
            "All 40 validation answers that a path reaches are true.",
        ),
        (
            answers_of(np.arange(40.0), np.zeros(40, dtype=bool)),
            "All 40 validation answers that a path reaches are false.",
        ),
        (answers_of(np.arange(40.0), np.arange(40) > 9, np.zeros(40, dtype=bool)), "Validation has 0 answers"),
    ],
)
def test_what_cannot_be_fitted_stays_a_sigmoid_and_says_why(answers: RankedAnswers, sentence: str) -> None:
    calibration = fit_calibration(answers)
    assert calibration.method == "sigmoid"
    assert calibration.reason.startswith(sentence)
    assert calibration.probabilities(np.array([0.0, 800.0]), np.array([True, False]), np.zeros(2, int)).tolist() == [
        0.5,
        SCARCELY,
    ]
    found = report_calibration(calibration, answers, "valid")
    assert found is None if not len(answers) else found is not None and set(found.reliability) == {"sigmoid"}


def test_without_a_curve_answers_that_no_path_reaches_stay_below_the_others() -> None:
    logits, reached = np.array([-6.0, 2.0, 1.0]), np.array([True, False, False])
    found = UNCALIBRATED.probabilities(logits, reached, np.zeros(3, int))
    assert found.tolist() == sorted(found, reverse=True)
    assert found[0] == sigmoid(logits)[0]
    assert 0 < found[2] < found[1] < 1e-6
    plain = UNCALIBRATED.probabilities(logits, reached, np.zeros(3, int), "sigmoid")
    assert plain.tolist() == sigmoid(logits).tolist()


def test_one_question_with_equal_logits_is_calibrated_to_its_rate() -> None:
    answers = answers_of(np.full(25, 3.0), np.arange(25) < 5, top=25)
    calibration = fit_calibration(answers)
    assert calibration.method == "platt"
    assert Calibration.from_json(json.loads(json.dumps(calibration.to_json()))) == calibration
    said = calibration.probabilities(np.array([3.0]), np.array([True]), np.zeros(1, int))[0]
    assert said == pytest.approx(soft_targets(answers.labels).mean())


def different_relations(count: int, seed: int) -> RankedAnswers:
    """Logits that mean another thing in every relation."""
    generator = np.random.default_rng(seed)
    logits, questions = generator.normal(0, 2, count), np.arange(count) // 10
    relations = questions % RELATIONS
    true = generator.random(count) < expit(logits + np.linspace(-4, 4, RELATIONS)[relations])
    return RankedAnswers(questions, relations, logits, np.ones(count, dtype=bool), true, RELATIONS)


def test_relations_that_differ_have_intercepts_of_their_own() -> None:
    calibration = fit_calibration(different_relations(6000, seed=21))
    assert calibration.method == "relation"
    assert "against" in calibration.reason
    assert "(isotonic)" in calibration.reason
    everywhere, relations = np.ones(RELATIONS, dtype=bool), np.arange(RELATIONS)
    said = calibration.probabilities(np.zeros(RELATIONS), everywhere, relations)
    assert said == pytest.approx(expit(np.linspace(-4, 4, RELATIONS)), abs=0.05)
    report = report_calibration(calibration, different_relations(6000, seed=22), "test")
    assert report is not None
    measured = report.reliability
    assert measured["relation"].brier < 0.8 * min(measured["isotonic"].brier, measured["platt"].brier)
    again = Calibration.from_json(json.loads(json.dumps(calibration.to_json(), allow_nan=False)))
    assert again == calibration
    fallen = calibration.to_json()
    fallen["parameters"]["relation"]["log_odds"].reverse()
    with pytest.raises(StorageError, match="The curve by relation"):
        Calibration.from_json(fallen)


def test_relations_that_do_not_differ_have_one_curve() -> None:
    calibration = fit_calibration(drawn(3000, seed=23))
    assert calibration.method in ("platt", "isotonic")
    seldom = [fit_calibration(drawn(600, seed)) for seed in range(12)]
    assert {found.method for found in seldom} <= {"platt", "isotonic"}
    by_chance = [f for f in seldom if f.cross_validation["relation"] < f.cross_validation[f.method]]
    assert all(f.reason.endswith("what that gains is within chance.") for f in by_chance)


def test_a_calibration_survives_json() -> None:
    calibration = fit_calibration(drawn(500, seed=12))
    again = Calibration.from_json(json.loads(json.dumps(calibration.to_json(), allow_nan=False)))
    assert again == calibration
    report = report_calibration(calibration, drawn(500, seed=13), "test")
    assert report is not None
    assert CalibrationReport.from_json(json.loads(json.dumps(report.to_json()))) == report


@pytest.mark.parametrize(
    ("method", "values"),
    [
        ("platt", {"slope": -1.0, "intercept": 0.0}),
        ("isotonic", {"logits": [0.0, 1.0], "probabilities": [0.5, 0.4]}),
        ("isotonic", {"logits": [1.0, 0.0], "probabilities": [0.1, 0.4]}),
        ("isotonic", {"logits": [], "probabilities": []}),
        ("spline", {}),
    ],
)
def test_a_curve_that_falls_is_refused(method: str, values: dict[str, object]) -> None:
    with pytest.raises(StorageError, match=f"The {method} curve"):
        curve_from_json(method, values)


def test_a_method_without_its_curve_is_refused() -> None:
    values = Calibration("platt", "", {"platt": FittedCurve(PlattCurve(1, 0), 0.1)}).to_json()
    with pytest.raises(KeyError):
        Calibration.from_json({**values, "method": "isotonic"})


def _parts(answers: RankedAnswers) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return answers.logits, answers.labels


def test_the_sigmoid_never_falls_and_keeps_small_probabilities() -> None:
    steps = [start + np.arange(20_000) * np.spacing(start) for start in (-30.0, -5.3, -1.0, 1e-3, 0.7, 9.0)]
    assert all((np.diff(sigmoid(np.sort(x))) >= 0).all() for x in steps)
    assert sigmoid(np.array([-np.inf, -800.0, 0.0, 800.0, np.inf])).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert sigmoid(np.array(-40.0)) == pytest.approx(np.exp(-40.0))
