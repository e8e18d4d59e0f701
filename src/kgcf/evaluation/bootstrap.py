"""How sure a mean is: its 95 % interval over resampled values."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Interval:
    """An estimate with its standard error and 95 % interval."""

    value: float
    standard_error: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the sign of the estimate is settled."""
        return self.low > 0 or self.high < 0


def bootstrap(values: NDArray[np.float64], generator: np.random.Generator, resamples: int = 1000) -> Interval:
    """The mean of values, one per query, with a 95 % percentile interval over resampled queries."""
    count = len(values)
    if not count:
        return Interval(float("nan"), float("nan"), float("nan"), float("nan"))
    means = np.empty(resamples)
    step = max(1, (8 << 20) // count)
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        means[first : first + rows] = values[generator.integers(0, count, (rows, count))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(values.mean()), float(means.std(ddof=1)), float(low), float(high))
