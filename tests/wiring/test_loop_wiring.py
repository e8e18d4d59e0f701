"""The training loop against a replay of its steps, and stopped after every one of them."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.model.kgcf import KGCF
from kgcf.training.batches import stream, triples_batch
from kgcf.training.loop import Listener, Trainer
from kgcf.training.passes import epoch_order
from kgcf.training.settings import TrainingSettings
from kgcf.training.step import GradientComputer, StepContext, Sums
from kgcf.training.substitutes import Substitutes
from tests.training.tiny import dataset, model, step_context

TIMES = ("seconds", "queries_per_second", "validation_seconds")
SETTINGS = [
    {"epochs": 2, "batch_size": 16},
    {"epochs": 2, "batch_size": 16, "schedule": "constant", "learning_rate": 0.01},
    {"epochs": 2, "batch_size": 8, "accumulate": 3},
    {"epochs": 3, "batch_size": 8, "accumulate": 2, "batches_per_epoch": 4, "seed": 3},
    {"epochs": 9, "batch_size": 16, "accumulate": 2, "budget": 150},
    {"epochs": 1, "batch_size": 40, "batches_per_epoch": 4},  # more than there are: the order starts again
]


def context() -> StepContext:
    """All losses on a small graph, with queries that no path answers."""
    graph = dataset().graph
    ends = np.roll(graph.triples, 3, axis=0).astype(np.int64)
    matched = np.arange(len(graph)) % 3 > 0
    found = Substitutes(graph, ends[:, 0], ends[:, 2], matched, matched, matched)
    net = model(3, treatment=True, context="unreached")
    return step_context(
        net, graph, assign_treatment(graph, TreatmentSettings()), found, skip_unreached=True, alpha=0.3, beta=0.2
    )


def settings(values: dict[str, Any]) -> TrainingSettings:
    return TrainingSettings.model_validate({"threads": 1, "learning_rate": 0.02, **values})


def weights(net: KGCF) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in net.named_parameters()}


def plan_steps(triples: int, chosen: TrainingSettings) -> list[tuple[int, int, list[list[int]]]]:
    """Epoch, step and the places in the epoch's order of every batch of every step."""
    joint = chosen.batch_size * chosen.accumulate
    per_epoch = chosen.batches_per_epoch or math.ceil(triples / joint)
    limit = chosen.epochs * per_epoch if chosen.budget is None else math.ceil(chosen.budget / joint)
    planned: list[tuple[int, int, list[list[int]]]] = []
    for epoch in range(chosen.epochs):
        for step in range(per_epoch):
            batches = []
            for number in range(chosen.accumulate):
                first = step * joint + number * chosen.batch_size
                places = list(range(first, first + chosen.batch_size))
                if chosen.batches_per_epoch is None:
                    places = [place for place in places if place < triples]
                else:
                    places = [place % triples for place in places]
                if places:
                    batches.append(places)
            planned.append((epoch, step, batches))
    return planned[:limit]


def replay(execution: StepContext, chosen: TrainingSettings) -> tuple[dict[int, dict[str, float]], int]:
    """Train by the book; gives the sums of every epoch, and the number of steps."""
    computer, net = GradientComputer(execution, 1), execution.model
    adam = torch.optim.Adam(net.parameters(), lr=chosen.learning_rate)
    planned = plan_steps(len(execution.graph), chosen)
    sums: dict[int, dict[str, float]] = {}
    for done, (epoch, step, batches) in enumerate(planned):
        order = epoch_order(len(execution.graph), chosen.seed, epoch)
        parts: list[tuple[Sums, Sums]] = []
        for number, places in enumerate(batches):
            batch = triples_batch(
                execution.graph, order[places], execution.objective.negatives, execution.remove,
                stream(chosen.seed, epoch, step, number),
            )  # fmt: skip
            parts.append(computer.compute(batch))
        queries, compared = sum(total.queries for total, _ in parts), sum(apart.queries for _, apart in parts)
        asked = queries + sum(total.unreached for total, _ in parts)
        head = net.decoder.unreached
        own = {id(parameter) for parameter in ([] if head is None else head.parameters())}  # learns from all queries
        for place, parameter in enumerate(net.parameters()):
            over = asked if id(parameter) in own else queries
            mean = sum((total.gradients[place] for total, _ in parts), torch.zeros_like(parameter)) / over
            extra = sum((apart.gradients[place] for _, apart in parts), torch.zeros_like(parameter)) / compared
            parameter.grad = (mean + execution.objective.beta * extra).detach()
        share = 0.5 * (1 + math.cos(math.pi * done / len(planned))) if chosen.schedule == "cosine" else 1.0
        adam.param_groups[0]["lr"] = chosen.learning_rate * share
        adam.step()
        row = sums.setdefault(epoch, {"compared": 0.0, "unreached": 0.0, "queries": 0.0})
        for total, apart in parts:
            counts = {"queries": total.queries, "unreached": total.unreached, "compared": apart.queries}
            for name, value in (total.terms | apart.terms | counts).items():
                row[name] = row.get(name, 0.0) + value
    return sums, len(planned)


@pytest.mark.parametrize("values", SETTINGS)
def test_the_loop_equals_a_replay(values: dict[str, Any]) -> None:
    chosen, mine, theirs = settings(values), context(), context()
    started = time.monotonic()
    progress = Trainer(mine, chosen, None).run()
    assert sum(entry["seconds"] for entry in progress.history) <= time.monotonic() - started
    sums, steps = replay(theirs, chosen)
    assert progress.steps == steps
    assert [entry["epoch"] for entry in progress.history] == [epoch + 1 for epoch in sums]
    for name, parameter in weights(mine.model).items():
        assert torch.allclose(parameter, weights(theirs.model)[name], rtol=1e-6, atol=1e-8), name
    for entry, wanted in zip(progress.history, sums.values(), strict=True):
        assert (entry["queries"], entry["unreached"], entry["impossible"]) == (
            wanted["queries"], wanted["unreached"], 0,
        )  # fmt: skip
        assert wanted["unreached"] > 0
        asked = wanted["queries"] + wanted["unreached"]
        for term in ("factual", "counterfactual"):
            assert entry[term] == pytest.approx(wanted[term] / wanted["queries"], rel=1e-6)
        assert entry["context"] == pytest.approx(wanted["context"] / asked, rel=1e-6)
        assert entry["discrepancy"] == pytest.approx(wanted["discrepancy"] / wanted["compared"], rel=1e-6)
        assert entry["queries_per_second"] == pytest.approx(asked / entry["seconds"])
        assert entry["seconds"] > 0


class Stopping(Listener):
    """Notes what it hears and presses Ctrl-C after some steps."""

    def __init__(self, after: int | None = None) -> None:
        self.after, self.steps, self.epochs = after, list[tuple[int, int, int]](), list[dict[str, float]]()

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        assert means["queries"] > 0
        self.steps.append((done, total, epoch))
        if done == self.after:
            raise KeyboardInterrupt

    def epoch(self, entry: dict[str, float]) -> None:
        self.epochs.append(entry)


def scripted(scores: list[float]) -> Callable[[Callable[[], int]], Callable[[], float]]:
    """Validation results by epoch, whatever the weights."""

    def of(epoch: Callable[[], int]) -> Callable[[], float]:
        return lambda: scores[epoch()]

    return of


def make(path: Path | None, listener: Listener, scores: list[float], **values: Any) -> Trainer:
    trainer = Trainer(context(), settings(values), lambda: 0.0, checkpoint=path, key="key", listener=listener)
    trainer.validate = scripted(scores)(lambda: trainer.progress.epoch)
    return trainer


def plain(history: list[dict[str, float]]) -> list[dict[str, float]]:
    return [{name: value for name, value in entry.items() if name not in TIMES} for entry in history]


def test_stopped_after_every_step_it_ends_with_the_same_best_weights(tmp_path: Path) -> None:
    scores = [0.3, 0.5, 0.4, 0.2]
    heard = Stopping()
    whole = make(None, heard, scores, epochs=4, batch_size=40)
    finished = whole.run()
    count = finished.steps
    assert heard.steps == [(i + 1, count, i * 4 // count) for i in range(count)]
    assert [entry["epoch"] for entry in heard.epochs] == [1, 2, 3, 4]
    assert [entry["validation_mrr"] for entry in heard.epochs] == scores
    assert (finished.best, finished.best_epoch, finished.waiting) == (0.5, 2, 2)
    for after in range(1, count):
        path = tmp_path / f"{after}.safetensors"
        stopped = make(path, Stopping(after), scores, epochs=4, batch_size=40)
        with pytest.raises(KeyboardInterrupt):
            stopped.run()
        resumed = make(path, Listener(), scores, epochs=4, batch_size=40)
        resumed.resume()
        assert resumed.progress.steps == after
        progress = resumed.run()
        assert plain(progress.history) == plain(finished.history)
        assert (progress.best, progress.best_epoch) == (0.5, 2)
        for name, parameter in weights(whole.context.model).items():
            assert torch.equal(parameter, weights(resumed.context.model)[name]), (after, name)


def test_patience_counts_validations_without_improvement() -> None:
    trainer = make(None, Listener(), [0.3, 0.3, 0.4, 0.1, 0.4, 0.9], epochs=6, batch_size=98, patience=2)
    progress = trainer.run()
    assert len(progress.history) == 5  # equal is no improvement
    assert (progress.best, progress.best_epoch) == (0.4, 3)


def test_without_validation_the_last_weights_stay() -> None:
    net = context()
    heard = Stopping()
    progress = Trainer(net, settings({"epochs": 2, "batch_size": 40}), None, listener=heard).run()
    assert (progress.best, progress.best_epoch) == (0.0, 2)
    assert all("validation_mrr" not in entry for entry in heard.epochs)


@pytest.mark.parametrize(("every", "written"), [(0.0, True), (3600.0, False)])
def test_checkpoints_inside_an_epoch_come_when_it_is_time(tmp_path: Path, every: float, written: bool) -> None:
    path = tmp_path / "c.safetensors"
    seen: list[bool] = []

    class Looking(Listener):
        def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
            seen.append(path.exists())

    make(path, Looking(), [0.5], epochs=1, batch_size=40, checkpoint_seconds=every).run()
    assert seen == [False, *[written] * (len(seen) - 1)]
    assert path.exists()


def test_times_go_on_where_a_stopped_epoch_was(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    with pytest.raises(KeyboardInterrupt):
        make(path, Stopping(2), [0.5], epochs=1, batch_size=40).run()
    resumed = make(path, Listener(), [0.5], epochs=1, batch_size=40)
    resumed.resume()
    before = resumed.progress.running["seconds"]
    assert before > 0
    resumed.progress.running["seconds"] = before + 100
    assert 100 < resumed.run().history[0]["seconds"] < 160
