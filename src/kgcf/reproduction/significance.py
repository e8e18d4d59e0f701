"""Is one variant better than another? Paired tests over questions and over seeds, an effect size, a correction."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from kgcf.evaluation.bootstrap import Interval, bootstrap

_FLIPS = 10_000  # random signs of the permutation test
_AT_ONCE = 1 << 22
_ROUNDING = 1e-12  # gains that differ by less are the same


@dataclass(frozen=True)
class Comparison:
    """A second variant against a first one: by how much better, and how sure that is."""

    difference: Interval  # of the mean reciprocal rank, over questions
    t_test: float  # two-sided p over questions
    permutation: float  # two-sided p over questions: signs of the differences flipped at random
    effect: Interval  # mean difference over its standard deviation (Cohen's d of pairs), over questions
    seeds: list[float]  # difference of every seed
    seed_test: float | None  # two-sided p of a paired t-test over seeds; None with fewer than two

    @property
    def weaker(self) -> float:
        """The larger p of both: other questions and other seeds have to agree; 1 where one seed says nothing of others.

        Over questions alone, what one training happens to learn counts as often as it has questions.
        """
        return 1.0 if self.seed_test is None else max(self.permutation, self.seed_test)


def compare_ranks(first: NDArray[np.float64], second: NDArray[np.float64]) -> Comparison:
    """Compare ranks [S, Q] of S seeds and Q questions: by how much the second ones are better."""
    return compare_gains(1 / second - 1 / first)


def compare_gains(gains: NDArray[np.float64], seed: int = 0) -> Comparison:
    """Test gains [S, Q] of S seeds and Q questions; a question counts with its mean over the seeds."""
    by_question, by_seed = gains.mean(axis=0), gains.mean(axis=1)
    spread = float(by_question.std(ddof=1)) if len(by_question) > 1 else 0.0
    generator = np.random.default_rng(seed)
    difference = bootstrap(by_question, generator)
    return Comparison(
        difference=difference,
        t_test=_paired(by_question),
        permutation=permutation_test(by_question, generator),
        effect=_effect(difference, spread),
        seeds=by_seed.tolist(),
        seed_test=_paired(by_seed) if len(by_seed) > 1 else None,
    )


def _effect(difference: Interval, spread: float) -> Interval:
    """A difference and its interval in units of the spread of the pairs; 0 where all are alike."""
    return Interval(*(value / spread if spread else 0.0 for value in vars(difference).values()))


def _paired(gains: NDArray[np.float64]) -> float:
    """Two-sided p of a t-test that the mean is 0; 1 where nothing differs, and of a single value."""
    if len(gains) < 2:
        return 1.0
    if np.ptp(gains) < _ROUNDING:  # scipy would warn of it
        return 1.0 if abs(gains[0]) < _ROUNDING else 0.0
    return float(stats.ttest_1samp(gains, 0.0).pvalue)


def permutation_test(gains: NDArray[np.float64], generator: np.random.Generator, flips: int = _FLIPS) -> float:
    """Two-sided p: how often random signs give a mean at least as far from 0; the one that was seen counts too."""
    nonzero = gains[gains != 0]
    if not len(nonzero):
        return 1.0
    seen, further = abs(nonzero.sum()), 0
    step = max(1, _AT_ONCE // len(nonzero))
    for first in range(0, flips, step):
        signs = generator.integers(0, 2, (min(step, flips - first), len(nonzero)), dtype=np.int8) * 2 - 1
        further += int((np.abs(signs @ nonzero) >= seen * (1 - 1e-12)).sum())
    return (further + 1) / (flips + 1)


def holm(values: dict[str, float]) -> dict[str, float]:
    """p values corrected for how many there are (Holm 1979): sorted, times what is left, never falling."""
    corrected: dict[str, float] = {}
    largest, left = 0.0, len(values)
    for name, value in sorted(values.items(), key=lambda item: item[1]):
        largest = max(largest, min(1.0, value * left))
        corrected[name] = largest
        left -= 1
    return corrected
