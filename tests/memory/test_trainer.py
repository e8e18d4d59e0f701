"""A memory learns, keeps its best epoch, and continues after a stop to the same numbers."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgcf.errors import KgcfError, StorageError
from kgcf.memory import cost
from kgcf.memory.complex_model import ComplEx
from kgcf.memory.cost import count_operations, estimate_epoch_seconds, fit_to_time
from kgcf.memory.gradients import differentiate
from kgcf.memory.memory import Memory
from kgcf.memory.questions import Questions
from kgcf.memory.settings import MemorySettings
from kgcf.memory.trainer import MemoryTrainer
from tests.training.tiny import family

SETTINGS = MemorySettings(rank=4, epochs=3, batch_size=32)


class StoppedError(Exception):
    """Raised where a process would be killed."""


def trainer(path: Path | None = None, key: str = "key", **changes: object) -> MemoryTrainer:
    settings = SETTINGS.model_copy(update=changes)
    return MemoryTrainer(family(np.random.default_rng(0)), settings, None, path, key, checkpoint_seconds=0)


def same(one: ComplEx, two: ComplEx) -> bool:
    return one.entities.equal(two.entities) and one.relations.equal(two.relations)


def test_it_learns() -> None:
    found = trainer(epochs=10)
    found.run()
    losses = [entry["tails"] + entry["relations"] for entry in found.progress.history]
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("stop", [1, 4, 13, 20])
def test_a_stop_at_any_step_resumes_to_the_same_numbers(tmp_path: Path, stop: int) -> None:
    whole = trainer()
    wanted = whole.run()
    stopped = trainer(tmp_path / "checkpoint.safetensors")

    def give_up(done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        if done == stop + 1:  # the checkpoint of the step before is there
            raise StoppedError

    stopped.on_step = give_up
    with pytest.raises(StoppedError):
        stopped.run()
    again = trainer(tmp_path / "checkpoint.safetensors")
    again.resume()
    assert again.progress.epoch * again.questions.step_count(8, 32) + again.progress.step == stop
    assert same(again.run(), wanted)
    timeless = [
        [{name: value for name, value in entry.items() if "second" not in name} for entry in each.progress.history]
        for each in (whole, again)
    ]
    assert timeless[0] == timeless[1]


def test_the_epoch_that_validates_best_is_kept() -> None:
    scores, seen = iter([0.2, 0.5, 0.3]), []

    def validate(model: ComplEx) -> float:
        seen.append(model.copy())
        return next(scores)

    found = trainer()
    found.validate = validate
    best = found.run()
    assert same(best, seen[1])
    assert (found.progress.best, found.progress.best_epoch) == (0.5, 2)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    trainer(tmp_path / "checkpoint.safetensors").run()
    with pytest.raises(StorageError, match="other settings or other data"):
        trainer(tmp_path / "checkpoint.safetensors", key="other").resume()
    half = (tmp_path / "checkpoint.safetensors").read_bytes()[:-9]
    (tmp_path / "checkpoint.safetensors").write_bytes(half)
    with pytest.raises(StorageError, match="is truncated: .* Delete it: `kgcf resume` then begins this stage anew"):
        trainer(tmp_path / "checkpoint.safetensors").resume()


def test_numbers_that_explode_are_said() -> None:
    with pytest.raises(KgcfError, match=r"The loss of the memory became nan in epoch 1, step \d+. Lower memory.learn"):
        trainer(learning_rate=1e30, n3=0.0).run()


def test_the_rank_follows_the_time() -> None:
    graph = family(np.random.default_rng(0))
    assert estimate_epoch_seconds(graph, SETTINGS) > 0
    assert count_operations(graph, SETTINGS.model_copy(update={"rank": 8})) == 2 * count_operations(graph, SETTINGS)
    large = SETTINGS.model_copy(update={"rank": 600})
    whole = fit_to_time(graph, large, 3600.0)
    assert whole is not None
    assert whole.settings == large
    assert fit_to_time(graph, large, 0.0) is None


class Ticking:
    """A clock by which a step of a rank takes as many seconds as the rank, and a question a tenth of that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.measured = 0.0, list[int]()
        usual, scores = differentiate, Memory.opinions

        def step(model: ComplEx, *rest: Any) -> Any:
            self.now += model.entities.shape[1] / 2
            self.measured.append(model.entities.shape[1] // 2)
            return usual(model, *rest)

        def opinions(memory: Memory, heads: Any, relations: Any) -> Any:
            self.now += len(heads) * memory.model.entities.shape[1] / 20
            return scores(memory, heads, relations)

        monkeypatch.setattr(cost, "differentiate", step)
        monkeypatch.setattr(Memory, "opinions", opinions)

    def __call__(self) -> float:
        return self.now


def test_rank_and_epochs_are_those_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = family(np.random.default_rng(0))
    clock = Ticking(monkeypatch)
    wanted = SETTINGS.model_copy(update={"rank": 100, "epochs": 6, "share": 0.5})
    steps = Questions.of(graph).step_count(wanted.answers, wanted.batch_size)
    fit = partial(fit_to_time, graph, clock=clock)
    half = fit(wanted, 2 * 6 * steps * 50.0)
    assert half is not None
    assert (half.settings.rank, half.settings.epochs) == (50, 6)
    assert half.seconds == pytest.approx(6 * steps * 50.0)
    asked = fit(wanted, 2 * 6 * (steps + 2) * 50.0, asked=20)  # 20 questions as two steps more
    assert asked is not None
    assert asked.settings.rank == 50
    assert asked.seconds == pytest.approx(6 * (steps + 2) * 50.0)
    short = fit(wanted, 2 * 3 * steps * 16.0)
    assert short is not None
    assert (short.settings.rank, short.settings.epochs) == (16, 3)
    assert fit(wanted, 2 * steps * 16.0) is None  # one epoch of six
    assert fit(wanted, 2 * 3 * steps * 16.0, keep_epochs=True) is None
    kept = fit(wanted, 2 * 3 * steps * 100.0, keep_rank=True)
    assert kept is not None
    assert (kept.settings.rank, kept.settings.epochs) == (100, 3)
    clock.measured.clear()
    assert fit(wanted.model_copy(update={"rank": 10**9, "epochs": 10**6}), 1.0, keep_rank=True) is None
    assert not clock.measured  # so much work that nobody needs to look
