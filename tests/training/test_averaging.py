"""The mean of the weights: by its formula, validated and kept instead of the last weights, resumed to the same bits."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from kgcf.training.averaging import WeightAverage
from kgcf.training.checkpoint import copy_weights
from kgcf.training.loop import Listener, Trainer
from kgcf.training.settings import TrainingSettings
from tests.training.tiny import dataset, model, step_context


class StoppedError(Exception):
    """Raised where a process would be killed."""


def walk(average: WeightAverage, values: list[float]) -> float:
    """The mean after one weight has had these values, step by step."""
    net = nn.Linear(1, 1, bias=False)
    for step, value in enumerate(values, start=1):
        with torch.no_grad():
            net.weight.fill_(value)
        average.take(net, step, len(values))
    return float(average.weights(net)["weight"])


def test_last_is_the_mean_of_evenly_spaced_snapshots() -> None:
    values = [float(v) for v in range(1, 21)]
    settings = TrainingSettings(average="last", average_share=0.5, average_snapshots=5)
    average = WeightAverage(settings)
    assert walk(average, values) == pytest.approx(np.mean([12, 14, 16, 18, 20]))
    assert average.taken == 5
    every = WeightAverage(settings.model_copy(update={"average_snapshots": 100}))
    assert walk(every, values) == pytest.approx(np.mean(values[10:]))


def test_exponential_forgets_what_is_longer_ago_than_its_share() -> None:
    values = list(np.random.default_rng(0).normal(size=40))
    found = walk(WeightAverage(TrainingSettings(average="exponential", average_share=0.1)), values)
    wanted = 0.0
    for step, value in enumerate(values, start=1):
        rate = max(1 / step, 1 / 4)
        wanted += rate * (value - wanted)
    assert found == pytest.approx(wanted, abs=1e-6)
    assert walk(WeightAverage(TrainingSettings()), values) == pytest.approx(values[-1])


def trainer(method: str, path: Path | None = None, listener: Listener | None = None) -> Trainer:
    data = dataset()
    settings = TrainingSettings.model_validate(
        {"epochs": 3, "batch_size": 16, "average": method, "average_share": 0.6, "average_snapshots": 4, "threads": 1}
        | {"checkpoint_seconds": 0.0}
    )
    net = model(3).float()
    context = step_context(net, data.graph)
    made = Trainer(context, settings, None, checkpoint=path, listener=listener or Listener())
    made.validate = lambda: float(made.progress.steps)  # the last epoch is the best
    return made


@pytest.mark.parametrize("method", ["exponential", "last"])
def test_the_mean_is_validated_kept_and_resumed(tmp_path: Path, method: str) -> None:
    whole, plain = trainer(method), trainer("none")
    seen = []

    def validate() -> float:
        seen.append(copy_weights(whole._model))
        return float(len(seen))

    whole.validate = validate
    whole.run()
    plain.run()
    best = copy_weights(whole._model)
    assert all(best[name].equal(seen[-1][name]) for name in best)  # validated is what is kept
    assert all(best[name].equal(whole._average.mean[name]) for name in best)
    assert any(not best[name].equal(weights) for name, weights in copy_weights(plain._model).items())

    class Stop(Listener):
        def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
            if done == total - 2:
                raise StoppedError

    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(StoppedError):
        trainer(method, path, Stop()).run()
    again = trainer(method, path)
    again.resume()
    assert again._average.taken > 0
    again.run()
    assert all(weights.equal(best[name]) for name, weights in copy_weights(again._model).items())


def test_the_model_goes_on_with_its_own_weights() -> None:
    """The mean is what is validated; the next step starts from where the last one ended."""
    averaged, plain = trainer("exponential"), trainer("none")
    averaged.run()
    plain.run()
    moments = [each._optimiser.state_dict()["state"][0]["exp_avg"] for each in (averaged, plain)]
    assert moments[0].equal(moments[1])
