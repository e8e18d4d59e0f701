"""`training.fan_in`: another training than without, the same every time, and the same after a stop."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from kgcf.config import configure
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.source import read
from kgcf.errors import SettingsError
from kgcf.pipeline import fit
from kgcf.training.batches import stream, triples_batch
from kgcf.training.loop import Trainer
from kgcf.training.settings import TrainingSettings
from kgcf.training.step import GradientComputer
from tests.training.tiny import TINY, dataset, family, model, step_context, write_folder


def graph_of_hubs() -> KnowledgeGraph:
    """The family, and three people whom everybody knows."""
    graph = family(np.random.default_rng(0))
    known = [(person, 2, hub) for hub in range(3) for person in range(3, 40)]
    return KnowledgeGraph.build(np.concatenate([graph.triples, np.array(known)]), 40, 3)


def trained(fan_in: int | None, checkpoint: Path | None = None, stop: int | None = None) -> dict[str, Tensor]:
    """Weights after two epochs, or after a stop in the middle and a resumption."""
    context = replace(step_context(model(3), graph_of_hubs(), negatives=4), fan_in=fan_in)
    settings = TrainingSettings(epochs=2, batches_per_epoch=3, batch_size=8, threads=1, checkpoint_seconds=0.0)
    trainer = Trainer(context, settings, None, checkpoint=checkpoint, key="same")
    if stop is not None:
        step, trainer_step = 0, trainer._step

        def interrupted(*given: object) -> None:
            nonlocal step
            step += 1
            if step > stop:
                raise KeyboardInterrupt
            trainer_step(*given)  # type: ignore[arg-type]

        trainer._step = interrupted  # type: ignore[method-assign, assignment]
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
        context = replace(step_context(model(3, seed=9), graph_of_hubs(), negatives=4), fan_in=fan_in)
        trainer = Trainer(context, settings, None, checkpoint=checkpoint, key="same")
        trainer.resume()
    trainer.run()
    return context.model.state_dict()


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_it_changes_training_is_repeatable_and_resumes_bit_equal(tmp_path: Path) -> None:
    thinned = trained(3)
    assert same(thinned, trained(3))
    assert not same(thinned, trained(None))
    assert same(trained(10**6), trained(None))
    assert same(thinned, trained(3, tmp_path / "checkpoint.safetensors", stop=4))


def test_draws_do_not_depend_on_the_number_of_threads() -> None:
    graph = graph_of_hubs()
    batch = triples_batch(graph, np.arange(0, 120, 7), 4, "pair", stream(0, 0, 0))
    context = replace(step_context(model(3), graph), fan_in=2)
    one, two = (GradientComputer(context, threads).compute(batch)[0] for threads in (1, 2))
    for a, b in zip(one.gradients, two.gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    exact = GradientComputer(replace(context, fan_in=None), 1).compute(batch)[0]
    assert any((a - b).abs().max() > 1e-6 for a, b in zip(one.gradients, exact.gradients, strict=True))


def test_the_setting_reaches_training_and_ranking_stays_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int | None] = []
    compute = GradientComputer.compute

    def watched(self: GradientComputer, *given: object, **named: object) -> object:
        seen.append(self._context.fan_in)
        return compute(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(GradientComputer, "compute", watched)
    data = read(write_folder(dataset(), tmp_path / "data"))
    changes = (*TINY, "training.fan_in=2", "training.epochs=1", "training.threads=1", "objective.alpha=0")
    run = fit(data, tmp_path / "run", preset="nbfnet", changes=changes)
    assert set(seen) == {2}
    again = fit(data, tmp_path / "exact", preset="nbfnet", changes=(*changes, "training.fan_in=none"))
    again.model.load_state_dict(run.model.state_dict())
    queries = np.array([1, 2, 3]), np.array([0, 1, 2])
    one, two = (which.observe(observed="train").scorer.score_tails(*queries) for which in (run, again))
    np.testing.assert_array_equal(one, two)


def test_impossible_values_are_refused() -> None:
    with pytest.raises(SettingsError, match="training.fan_in"):
        configure(changes=("training.fan_in=0",))
    assert configure(changes=("training.fan_in=none",)).training.fan_in is None
