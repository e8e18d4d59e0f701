"""What a training pass of up to 8 answers costs by depth and negatives, beside the dense reference at the same depth.

A pass is one question (head, relation, ?) with up to 8 of its true answers and shared negatives. The steps are the
trainer's own (batches drawn, plans, gradients, Adam), presets by turns; the dense reference differentiates the same
passes of the same epoch, one at a time, with all cores inside its operations.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from kgcf.data import registry
from kgcf.data.dataset import Dataset
from kgcf.model.dense_scores import score_densely
from kgcf.model.kgcf import KGCF
from kgcf.propagation.dense.propagation import DenseEdges, propagate_densely
from kgcf.propagation.plan.planner import Planner
from kgcf.training.batches import Batch, make_batch, stream
from kgcf.training.passes import Passes
from steps import Prepared, prepare

PRESETS = ("nbfnet", "default")
BATCH = 64
WARM = 2  # steps that do not count


@dataclass(frozen=True)
class PassCase:
    """A graph, a depth, a number of negatives, and what two idle cores should need at most."""

    graph: str
    layers: int
    negatives: int
    target: float  # milliseconds per pass


@dataclass(frozen=True)
class PassTiming:
    """Milliseconds per pass: of the clock, and of all cores together; by preset."""

    graph: str
    layers: int
    negatives: int
    target: float
    updates: float
    messages: float
    wall: dict[str, float]
    cpu: dict[str, float]
    dense: float | None = None  # of the clock, preset nbfnet


CASES = (
    PassCase("fb15k-237", 3, 256, 4.0),
    PassCase("fb15k-237", 4, 256, 18.0),
    PassCase("wn18rr", 6, 128, 2.0),
)


def changes_of(case: PassCase, threads: int) -> tuple[str, ...]:
    """The settings of a case."""
    return (
        f"encoder.layers={case.layers}",
        f"objective.negatives={case.negatives}",
        "objective.answers=8",
        f"training.batch_size={BATCH}",
        f"training.threads={threads}",
    )


def medians(runs: dict[str, Callable[[int], None]], repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    """Wall clock and processor time of every run, by turns, in milliseconds per pass."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for index in range(WARM + repeats):
        for name, run in runs.items():
            start = time.perf_counter(), time.process_time()
            run(index)
            times[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    found = {name: np.median(values[WARM:], axis=0) * 1e3 / BATCH for name, values in times.items()}
    return {name: float(value[0]) for name, value in found.items()}, {n: float(v[1]) for n, v in found.items()}


def batch_of(data: Dataset, prepared: Prepared, index: int, size: int) -> Batch:
    """Passes of the epoch, drawn as the trainer draws them."""
    settings = prepared.settings
    epoch = Passes(data.graph, settings.objective.answers).epoch(settings.training.seed, 0)
    asked = epoch.take(np.arange(index * size, (index + 1) * size))
    return make_batch(data.graph, asked, prepared.context.rules, stream(settings.training.seed, 0, index, 0))


def dense_milliseconds(data: Dataset, prepared: Prepared, repeats: int) -> float:
    """The dense reference on single passes: forward and backward, without Adam."""
    model: KGCF = prepared.context.model
    edges = DenseEdges.build(data.graph, model.encoder.query.weight)
    times = []
    for index in range(repeats + 1):
        batch = batch_of(data, prepared, index, 1)
        start = time.perf_counter()
        asked = torch.from_numpy(batch.heads), torch.from_numpy(batch.relations)
        logits = score_densely(model.decoder, propagate_densely(model.encoder, edges, *asked, batch.hidden))
        chosen = logits.gather(1, torch.from_numpy(batch.candidates))
        truth = (torch.arange(chosen.shape[1]) < batch.asked.triples.shape[1]).to(chosen).expand_as(chosen)
        functional.binary_cross_entropy_with_logits(chosen, truth).backward()  # type: ignore[no-untyped-call]
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:])) * 1e3


def measure_pass(case: PassCase, threads: int, quick: bool, dense: bool) -> PassTiming:
    """Time one case."""
    data = registry.load(case.graph)
    with tempfile.TemporaryDirectory(prefix="kgcf-benchmark-") as scratch:
        prepared = {preset: prepare(data, preset, changes_of(case, threads), Path(scratch)) for preset in PRESETS}
    wall, cpu = medians({preset: one.step for preset, one in prepared.items()}, 3 if quick else 15)
    batch = batch_of(data, prepared["nbfnet"], 0, BATCH)
    plan = Planner(data.graph, case.layers).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    timing = PassTiming(
        case.graph,
        case.layers,
        case.negatives,
        case.target,
        plan.slot_count / len(plan),
        plan.edge_count / len(plan),
        wall,
        cpu,
    )
    return replace(timing, dense=dense_milliseconds(data, prepared["nbfnet"], 2 if quick else 5)) if dense else timing


def describe_pass(timing: PassTiming) -> str:
    """One line of the table."""
    name = f"{timing.graph}, {timing.layers} layers, {timing.negatives} negatives"
    line = f"{name:40s} {timing.updates:8,.0f} updates {timing.messages:9,.0f} messages"
    for preset in timing.wall:
        line += f"; {preset} {timing.wall[preset]:.2f} ms, {timing.cpu[preset]:.2f} of cores"
    line += f"; to reach {timing.target:g}"
    if timing.dense is not None:
        line += f"; dense {timing.dense:,.0f} ms ({timing.dense / timing.wall['nbfnet']:,.0f}×)"
    return line
