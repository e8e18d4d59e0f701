"""Probabilities of completed links: known rates are found by relation, a handful of cases promises little."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from kgcf.errors import StorageError
from kgcf.prediction.calibration.completed_links import CompletionCalibration, fit_completion, group_count, link_groups
from kgcf.prediction.calibration.fitting import FOLDS, fit_calibration
from kgcf.prediction.calibration.link_curves import LEAST_CASES, SPREADS, LinkCurve, Proposals, add_up, fit_link_curve
from kgcf.prediction.calibration.ranked_answers import RankedAnswers

RATES = {0: -1.0, 1: -4.0, 2: -7.0}  # log-odds of a link of logit 0, by relation


def proposed(seed: int, questions: int = 600, links: int = 20, extra: int = 0) -> Proposals:
    """Relations of one slope and known rates; a part of the questions has no missing answer at all."""
    generator = np.random.default_rng(seed)
    count = questions * links
    question = np.repeat(np.arange(questions), links)
    groups = question % 3
    logits = generator.normal(0, 2, count)
    labels = generator.random(count) < expit(0.8 * logits + np.array(list(RATES.values()))[groups])
    return Proposals(question, groups, logits, labels, np.ones(count), 3 + extra)


def joined(one: Proposals, other: Proposals) -> Proposals:
    return Proposals(
        np.concatenate([one.questions, other.questions + 1 + one.questions.max()]),
        np.concatenate([one.groups, other.groups]),
        np.concatenate([one.logits, other.logits]),
        np.concatenate([one.labels, other.labels]),
        np.concatenate([one.weights, other.weights]),
        one.group_count,
    )


def handful(relation: int, cases: int, true: int, value: float, groups: int) -> Proposals:
    labels = np.arange(cases) < true
    return Proposals(np.arange(cases), np.full(cases, relation), np.full(cases, value), labels, np.ones(cases), groups)


def test_the_rates_of_relations_are_found_where_one_curve_would_be_far_off() -> None:
    found = fit_completion(proposed(1), "seen")
    assert found.cross_validation["2"] < found.cross_validation["0"]
    fresh = proposed(2)
    said = found.probabilities(fresh.logits, fresh.groups)
    everywhere, one = np.ones(len(fresh), dtype=bool), np.zeros(len(fresh), dtype=np.int64)
    answers = RankedAnswers(fresh.questions, one, fresh.logits, everywhere, fresh.labels, 1)
    asked = np.isin(answers.questions, answers.questions[answers.labels])  # questions with a missing answer only
    old = fit_calibration(answers.where(asked)).probabilities(fresh.logits, answers.reached, one)
    for relation in RATES:
        here = fresh.groups == relation
        best = np.argsort(-fresh.logits[here])[:400]
        true = fresh.labels[here][best].mean()
        assert said[here][best].mean() == pytest.approx(true, abs=0.05)
        if relation > 0:
            assert old[here][best].mean() > true + 0.2
    top = np.argsort(-said)[:300]
    assert said[top].mean() == pytest.approx(fresh.labels[top].mean(), abs=0.05)


def test_what_a_link_stands_for_counts() -> None:
    everything = proposed(3, questions=3000)
    generator = np.random.default_rng(0)
    kept = everything.labels | (generator.random(len(everything)) < 0.1)
    weights = np.where(everything.labels, 1.0, 10.0)
    names = ("questions", "groups", "logits", "labels")
    thinned = replace(everything, weights=weights[kept], **{name: getattr(everything, name)[kept] for name in names})
    assert thinned.rate == pytest.approx(everything.rate, rel=0.05)
    full, part = (fit_completion(p, "seen") for p in (everything, thinned))
    grid, groups = np.tile(np.linspace(-2, 3, 6), 3), np.repeat(np.arange(3), 6)
    assert part.probabilities(grid, groups) == pytest.approx(full.probabilities(grid, groups), abs=0.06)


@pytest.mark.parametrize("spread", SPREADS)
def test_three_of_three_in_a_relation_do_not_promise_much(spread: float) -> None:
    proposals = joined(proposed(4, extra=1), handful(3, cases=3, true=3, value=2.0, groups=4))
    cells = add_up(proposals, FOLDS, np.random.default_rng(0))
    assert cells is not None
    curve = fit_link_curve(cells, spread)
    whole = LinkCurve(curve.logits, curve.log_odds, (0.0,) * 4)
    given, shared = curve(np.array([2.0]), np.array([3]))[0], whole(np.array([2.0]), np.array([3]))[0]
    assert shared <= given < 0.85
    many = joined(proposed(4, extra=1), handful(3, cases=300, true=300, value=2.0, groups=4))
    learned = fit_completion(many, "seen").probabilities(np.array([2.0]), np.array([3]))[0]
    assert learned > 0.9  # three hundred of three hundred do


def test_a_relation_without_cases_is_like_the_whole() -> None:
    found = fit_completion(proposed(5, extra=2), "seen").curve
    assert found is not None
    assert found.intercepts[3:] == (0.0, 0.0)
    assert min(found.intercepts[:3]) < -1 < 1 < max(found.intercepts[:3])


def test_nothing_is_promised_beyond_what_was_seen() -> None:
    proposals = proposed(6)
    found = fit_completion(proposals, "seen")
    beyond = np.sort(proposals.logits)[-1 - LEAST_CASES]
    said = found.probabilities(np.array([beyond, 50.0]), np.array([0, 0]))
    assert said[0] == said[1] < 0.98


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 60))
def test_within_a_relation_probabilities_never_fall(seed: int, questions: int) -> None:
    proposals = proposed(seed, questions=questions, links=4)
    found = fit_completion(proposals, "seen")
    grid = np.sort(np.concatenate([proposals.logits, np.linspace(-20, 20, 50)]))
    for relation in range(3):
        said = found.probabilities(grid, np.full(len(grid), relation))
        assert (np.diff(said) >= 0).all()
        assert ((said >= 0) & (said <= 1)).all()


def test_awkward_cases_are_defined() -> None:
    few = handful(0, cases=5, true=2, value=1.0, groups=1)
    found = fit_completion(few, "seen")
    assert found.method == "sigmoid"
    assert found.reason.startswith("Validation gives 5 proposals")
    assert found.probabilities(np.array([0.0]), np.array([0]))[0] == 0.5
    nothing = fit_completion(handful(0, cases=200, true=0, value=1.0, groups=1), "seen")
    assert nothing.method == "completion"
    assert nothing.probabilities(np.array([9.0]), np.array([0]))[0] == pytest.approx(0.5 / 201)
    everything = fit_completion(handful(0, cases=200, true=200, value=1.0, groups=1), "seen")
    assert everything.probabilities(np.array([9.0]), np.array([0]))[0] == pytest.approx(200.5 / 201)
    alike = fit_completion(handful(0, cases=200, true=50, value=1.0, groups=1), "seen")
    assert alike.probabilities(np.array([1.0]), np.array([0]))[0] == pytest.approx(0.25, abs=0.01)


def test_json_gives_the_same_calibration_back() -> None:
    found = fit_completion(proposed(7), "seen")
    plain = json.loads(json.dumps(found.to_json()))
    assert CompletionCalibration.from_json(plain) == found
    plain["curve"]["log_odds"].reverse()
    with pytest.raises(StorageError, match="not one that kgcf writes"):
        CompletionCalibration.from_json(plain)


def test_groups_of_all_candidates_tell_who_was_seen() -> None:
    assert link_groups("seen", 5, True, np.array([True, False])).tolist() == [5, 5]
    assert link_groups("all", 5, True, np.array([True, False])).tolist() == [23, 22]
    assert link_groups("all", 5, False, np.array([True, False])).tolist() == [21, 20]
    assert (group_count("seen", 6), group_count("all", 6)) == (6, 24)


def test_the_loss_has_the_gradient_that_it_says() -> None:
    from kgcf.prediction.calibration.link_curves import _loss

    cells = add_up(proposed(8, questions=40), FOLDS, np.random.default_rng(0))
    assert cells is not None
    pieces = cells.parts.shape[1]
    for spread, width in ((0.0, 1 + pieces), (0.7, 1 + pieces + 3)):
        theta = np.random.default_rng(1).normal(0, 0.5, width)
        _, gradient = _loss(theta, cells, spread)
        for i in range(width):
            step = np.eye(width)[i] * 1e-5
            slope = (_loss(theta + step, cells, spread)[0] - _loss(theta - step, cells, spread)[0]) / 2e-5
            assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-3)
