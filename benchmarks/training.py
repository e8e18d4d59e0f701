"""Time whole training steps against the engine alone, part by part, on the same batches in one process.

Run: python benchmarks/training.py [DATA] [--steps 100] [--negatives 32] [--output FILE.json]

"engine" plans, propagates, decodes, differentiates and moves Adam for batches made beforehand. The presets' steps do
the same and what training adds: negatives, treatment of every candidate, context, the counterfactual loss (α), the
discrepancy (β, 8 pairs). The variants take turns, one thread, warm medians; only ratios of one run mean anything.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kgcf.config import configure
from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.propagation.plan.planner import Planner
from kgcf.runs.model_file import new_model
from kgcf.runs.settling import settle
from kgcf.training.batches import Batch, stream, triples_batch
from kgcf.training.objective import query_losses
from kgcf.training.passes import epoch_order
from machine import describe_protocol
from steps import Step, trainer_step

VARIANTS = {
    "nbfnet": ("nbfnet", ()),
    "+ treatment": ("default", ("encoder.context=none", "objective.alpha=0.0")),
    "+ context": ("default", ("objective.alpha=0.0",)),
    "+ α (default)": ("default", ("objective.alpha=0.01",)),
    "+ β": ("default", ("objective.alpha=0.01", "objective.beta=0.001")),
}


class EngineStep:
    """Plan, propagate, decode, differentiate, Adam; the batch is made beforehand."""

    def __init__(self, data: Dataset, negatives: int) -> None:
        settings = settle(configure("nbfnet", data.benchmark, None, [f"objective.negatives={negatives}"]), data)
        self._data, self._settings, self._negatives = data, settings, negatives
        self._model = new_model(settings, len(data.relations))
        self._order = epoch_order(len(data.graph), 0, 0)
        self._planner = Planner(data.graph, settings.encoder.layers)
        self._optimiser = torch.optim.Adam(self._model.parameters(), lr=settings.training.learning_rate)
        self._batch: Batch | None = None

    def prepare(self, index: int) -> None:
        """Make the batch, outside the time."""
        remove, size = self._settings.training.remove, self._settings.training.batch_size
        assert remove != "auto"
        triples = self._order[index * size : (index + 1) * size]
        self._batch = triples_batch(self._data.graph, triples, self._negatives, remove, stream(0, 0, index, 0))

    def __call__(self, index: int) -> None:
        """One step on the batch that was prepared."""
        batch = self._batch
        assert batch is not None
        plan = self._planner.plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
        logits = self._model.decode(self._model.encode(plan), None)
        loss = query_losses(logits, torch.ones(len(batch), 1), self._settings.objective.temperature).mean()
        parameters = list(self._model.parameters())
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        self._optimiser.step()


def measure(name: str, steps: int, negatives: int) -> dict[str, Any]:
    """Milliseconds per query and ratios."""
    torch.set_num_threads(1)
    data = read(name)
    size = configure("nbfnet", data.benchmark).training.batch_size
    alone = EngineStep(data, negatives)
    with tempfile.TemporaryDirectory(prefix="kgcf-benchmark-") as scratch:
        works: dict[str, Step] = {"engine": alone}
        for title, (preset, changes) in VARIANTS.items():  # they share treatment, entity space and substitutes
            more = (f"objective.negatives={negatives}", "training.threads=1")
            works[title] = trainer_step(data, preset, (*changes, *more), Path(scratch))
    times: dict[str, list[float]] = {title: [] for title in works}
    for index in range(steps):
        alone.prepare(index)
        for title, work in works.items():
            start = time.perf_counter()
            work(index)
            times[title].append(time.perf_counter() - start)
    medians = {title: float(np.median(values[steps // 10 :])) * 1e3 / size for title, values in times.items()}
    return {
        "dataset": data.name,
        "negatives": negatives,
        "batch_size": size,
        "steps": steps,
        "milliseconds_per_query": medians,
        "to_engine": {title: value / medians["engine"] for title, value in medians.items()},
        "to_nbfnet": {title: value / medians["nbfnet"] for title, value in medians.items()},
        "protocol": describe_protocol(1),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="wn18rr")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--negatives", type=int, default=32)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    found = measure(arguments.data, arguments.steps, arguments.negatives)
    print(f"{found['dataset']}, {found['negatives']} negatives: ms per query, to the engine, to nbfnet")
    for title, value in found["milliseconds_per_query"].items():
        print(f"{title:16s} {value:7.3f}  {found['to_engine'][title]:5.2f}  {found['to_nbfnet'][title]:5.2f}")
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
