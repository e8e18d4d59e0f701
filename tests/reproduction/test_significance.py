"""Paired tests: they find what is there, do not find what is not, and agree with scipy and with counting."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from kgcf.reproduction.significance import compare_gains, compare_ranks, holm, permutation_test


def test_the_permutation_test_counts_all_signs() -> None:
    gains = np.array([0.3, -0.1, 0.25, 0.4, 0.05, -0.02, 0.0])
    seen = abs(gains.sum())
    signs = np.array(list(product((-1, 1), repeat=6)))
    exact = (np.abs(signs @ gains[:6]) >= seen - 1e-12).mean()
    assert permutation_test(gains, np.random.default_rng(0)) == pytest.approx(exact, abs=0.01)
    assert permutation_test(np.zeros(4), np.random.default_rng(0)) == 1.0


def test_a_real_difference_is_found_and_none_is_not() -> None:
    generator = np.random.default_rng(1)
    first = generator.integers(2, 50, (3, 400)).astype(np.float64)
    better = np.maximum(1, first - generator.integers(0, 3, first.shape))
    found = compare_ranks(first, better)
    assert found.difference.low > 0
    assert 0 < found.effect.low < found.effect.value < found.effect.high
    assert max(found.t_test, found.permutation) < 0.001
    by_question = (1 / better - 1 / first).mean(axis=0)
    assert found.t_test == pytest.approx(stats.ttest_rel((1 / better).mean(0), (1 / first).mean(0)).pvalue)
    assert found.difference.value == pytest.approx(by_question.mean())
    assert found.seed_test == pytest.approx(stats.ttest_rel((1 / better).mean(1), (1 / first).mean(1)).pvalue)
    shuffled = generator.permuted(first, axis=1)
    assert compare_ranks(first, shuffled).permutation > 0.05
    same = compare_ranks(first[:1], first[:1])
    assert (same.t_test, same.permutation, same.effect.value, same.seed_test) == (1.0, 1.0, 0.0, None)


def test_holm_multiplies_by_what_is_left_and_never_falls() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"b": 1.0, "a": 1.0}
    assert holm({}) == {}


def test_one_question_or_one_seed_proves_nothing() -> None:
    one = compare_ranks(np.array([[4.0]]), np.array([[1.0]]))
    assert one.t_test == 1.0
    assert one.weaker == 1.0
    many = compare_ranks(np.full((1, 50), 4.0), np.ones((1, 50)))
    assert many.permutation < 0.001
    assert many.weaker == 1.0  # another training may say otherwise


def test_seeds_that_agree_to_the_last_digit_are_no_warning() -> None:
    gains = np.full((3, 20), 0.1)
    gains[1] += 1e-16
    assert compare_gains(gains).seed_test == 0.0
    assert compare_gains(gains * 1e-15).seed_test == 1.0


def test_seeds_that_disagree_weaken_what_questions_say() -> None:
    first = np.full((3, 300), 2.0)
    second = np.stack([np.ones(300), np.full(300, 4.0), np.full(300, 4.0)])
    second[:, ::3] = 2.0
    found = compare_ranks(first, second)
    assert found.seed_test is not None
    assert found.seed_test > 0.5
    assert found.weaker == max(found.seed_test, found.permutation)
