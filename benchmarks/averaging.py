"""What the mean of the weights is worth on validation: one training, all means of its weights, the same questions.

Run: python benchmarks/averaging.py DATA … [--preset fast] [--set training.budget=20000] [--share 0.25] [--output FILE]

A mean never changes the course of a training, so one training serves all: the weights of its last step, and the means
`exponential` and `last` over each share of its steps. Test is never looked at.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from kgcf.config import Settings, configure
from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.pipeline import step_context
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.runs.folder import RunFolder
from kgcf.runs.model_file import new_model
from kgcf.runs.settling import settle
from kgcf.runs.stages import substitutes_stage, treatment_stage
from kgcf.runs.validation import divided_mrr
from kgcf.training.averaging import WeightAverage
from kgcf.training.checkpoint import copy_weights, put_weights
from kgcf.training.distributed import World
from kgcf.training.loop import Listener, Trainer
from machine import describe_protocol


class Means(Listener):
    """Takes the weights after every step into several means."""

    def __init__(self, model: torch.nn.Module, settings: Settings, shares: list[float]) -> None:
        self._model = model
        self.means = {
            f"{method}, last {share:g}": WeightAverage(
                settings.training.model_copy(update={"average": method, "average_share": share})
            )
            for method in ("exponential", "last")
            for share in shares
        }

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        """One more step."""
        for mean in self.means.values():
            mean.take(self._model, done, total)


def measure(data: Dataset, preset: str, changes: list[str], shares: list[float]) -> dict[str, float]:
    """Validation MRR of the last weights and of every mean."""
    settings = settle(configure(preset, data.benchmark, None, changes), data)
    training = settings.training
    with tempfile.TemporaryDirectory(prefix="kgcf-averaging-") as scratch:
        folder = RunFolder(Path(scratch))
        treatment = treatment_stage(folder, data, settings)
        substitutes = substitutes_stage(folder, data, settings, treatment)
    model = new_model(settings, len(data.relations))
    listener = Means(model, settings, shares)
    trainer = Trainer(step_context(model, data, settings, treatment, substitutes), training, None, listener=listener)
    trainer.run()  # without validation the last weights are kept
    bound = ObservedGraph(model, data.graph, data.entities, data.relations, treatment)
    sets = {"none": copy_weights(model)} | {name: mean.weights(model) for name, mean in listener.means.items()}
    found = {}
    for name, weights in sets.items():
        put_weights(model, weights)
        found[name] = divided_mrr(bound.scorer, data, training.validate_triples, training.seed, World())
        print(f"{data.name}: {name}: {found[name]:.4f}")
    return found


def main() -> None:
    """Measure, print, add to the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--share", type=float, action="append")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    shares = given.share or [0.1, 0.25, 0.5]
    found: dict[str, Any] = {
        name: {
            "preset": given.preset,
            "changes": given.changes,
            "validation_mrr": measure(read(name), given.preset, given.changes, shares),
        }
        for name in given.data
    }
    if given.output is not None:
        kept = json.loads(given.output.read_text()) if given.output.is_file() else {}
        kept |= {**found, "protocol": describe_protocol(torch.get_num_threads())}
        given.output.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
