"""What a pass takes by what it computes: ms = a + b · updates + c · messages, none of them negative."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

PRIOR = (0.3, 2.0e-3, 6.6e-5)  # a, b, c of one core where nothing was measured yet
_MOST = 2.0  # times the prior, scaled to this machine: more, an update or a message does not take
_FAINT = 0.03  # weight of the prior beside a measurement: it decides only what measurements leave open


@dataclass(frozen=True)
class Work:
    """What a pass computes, as a mean over a sample of passes."""

    updates: float  # state updates
    messages: float


@dataclass(frozen=True)
class CostModel:
    """Milliseconds of one core."""

    constant: float
    per_update: float
    per_message: float

    def milliseconds(self, work: Work) -> float:
        """Of one pass."""
        return self.constant + self.per_update * work.updates + self.per_message * work.messages


def prior_model() -> CostModel:
    """What a pass took elsewhere: good enough to decide what can be tried at all."""
    return CostModel(*PRIOR)


def fit_costs(measured: Sequence[tuple[Work, float]]) -> CostModel:
    """Least squares of relative errors over (work, milliseconds), none of the coefficients negative.

    Points of equal kind leave some directions open (two depths cannot tell three coefficients apart). There, and only
    there, the prior decides, scaled to how fast this machine is: by a faint pull towards it. And passes of ten updates
    differ in their negatives more than in their updates, so that b and c are bounded: a thousand updates must not be
    thought to take a hundred times as long.
    """
    if not measured:
        return prior_model()
    rows = np.array([[1.0, work.updates, work.messages] for work, _ in measured])
    times = np.maximum(np.array([milliseconds for _, milliseconds in measured]), 1e-6)
    prior = np.array(PRIOR) * float(np.median(times / (rows @ PRIOR)))
    table = np.concatenate([rows / times[:, None], np.diag(_FAINT / prior)])
    wanted = np.concatenate([np.ones(len(times)), np.full(3, _FAINT)])
    scale = np.abs(table).max(axis=0)
    most = np.array([np.inf, *(_MOST * prior[1:])])
    found = lsq_linear(table / scale, wanted, bounds=(0, most * scale), method="bvls").x
    return CostModel(*(float(value) for value in found / scale))
