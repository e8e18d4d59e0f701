"""The mean of the weights over the last part of training: smoother than the weights of any single step."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from kgcf.training.checkpoint import copy_weights
from kgcf.training.settings import TrainingSettings


@dataclass
class WeightAverage:
    """A running mean by name; empty until the first weights are taken.

    `exponential`: every step, each one counting less the longer ago it was, over about a share of all steps.
    `last`: some snapshots, evenly spaced over the last share of the steps, counting the same.
    """

    settings: TrainingSettings
    taken: int = 0  # sets of weights in the mean
    mean: dict[str, Tensor] = field(default_factory=dict)

    def take(self, model: nn.Module, steps: int, total: int) -> None:
        """Look at the weights after `steps` of `total` steps, and take them into the mean if it is their turn."""
        method = self.settings.average
        if method == "none" or (method == "last" and not self._is_snapshot(steps, total)):
            return
        self.taken += 1
        rate = 1 / self.taken
        if method == "exponential":
            rate = max(rate, 1 / max(self.settings.average_share * total, 1.0))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if self.taken == 1:
                    self.mean[name] = parameter.detach().clone()
                else:
                    self.mean[name].lerp_(parameter.detach(), rate)

    def weights(self, model: nn.Module) -> dict[str, Tensor]:
        """A copy of the weights that are worth keeping: the mean, or the model's own while there is none."""
        return {name: mean.clone() for name, mean in self.mean.items()} if self.mean else copy_weights(model)

    def _is_snapshot(self, steps: int, total: int) -> bool:
        """Whether one of the snapshots falls on this step; the last one falls on the last step."""
        last, count = max(round(self.settings.average_share * total), 1), self.settings.average_snapshots
        gone = steps - (total - last)  # steps into the last part
        if gone <= 0:
            return False
        return gone * count // last > (gone - 1) * count // last
