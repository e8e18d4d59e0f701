"""The mean of the weights over the last part of training: smoother than the weights of any single step."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

Average = Literal["none", "exponential", "last"]


@dataclass
class WeightAverage:
    """A running mean by name; empty until the first weights are taken.

    `exponential`: every step, each one counting less the longer ago it was, over about `share` of all steps.
    `last`: `snapshots` sets of weights, evenly spaced over the last `share` of the steps, counting the same.
    """

    method: Average
    share: float
    snapshots: int
    taken: int = 0  # sets of weights in the mean
    mean: dict[str, Tensor] = field(default_factory=dict)

    def take(self, model: nn.Module, steps: int, total: int) -> None:
        """Look at the weights after `steps` of `total` steps, and take them into the mean if it is their turn."""
        if self.method == "none" or (self.method == "last" and not self._is_snapshot(steps, total)):
            return
        self.taken += 1
        rate = 1 / self.taken
        if self.method == "exponential":
            rate = max(rate, 1 / max(self.share * total, 1.0))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if self.taken == 1:
                    self.mean[name] = parameter.detach().clone()
                else:
                    self.mean[name].lerp_(parameter.detach(), rate)

    def _is_snapshot(self, steps: int, total: int) -> bool:
        """Whether one of the snapshots falls on this step; the last one falls on the last step."""
        last = max(round(self.share * total), 1)
        gone = steps - (total - last)  # steps into the last part
        if gone <= 0:
            return False
        return gone * self.snapshots // last > (gone - 1) * self.snapshots // last
