"""Time the sparse engine against the dense reference on the same queries, in one process.

    python benchmarks/engine.py                       # every graph
    python benchmarks/engine.py --graph wn18rr --quick
    python benchmarks/engine.py --json results.json   # with the protocol
    python benchmarks/engine.py --passes              # passes of up to 8 answers, by depth and negatives

The engine's training step is plan, forward, backward and Adam for 1 positive and 32 negatives per query, on batches
made beforehand; "step" is the trainer's own, as `kgcf train` makes it: batches are drawn too, and preset `default` adds
treatment, context and the counterfactual loss, with as many threads as training chooses. Engine and steps take
turns. Ranking scores all entities. The reference reduces sorted segments, uses all cores inside its operations, and
runs at the batch size that suits it best. Times are warm medians; ratios compare times of one run.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from kgcf.data import registry
from kgcf.data.hiding import HiddenTriples
from kgcf.model.all_entities import make_background, reads_contexts, score_all
from kgcf.model.dense_scores import score_densely
from kgcf.model.kgcf import KGCF, DecoderSettings
from kgcf.propagation.dense.propagation import DenseEdges, propagate_densely
from kgcf.propagation.plan.contexts import all_contexts
from kgcf.propagation.plan.planner import Budget, Planner
from kgcf.propagation.workers import Workers
from machine import describe_protocol, peak_memory, reset_peak_memory
from pass_costs import CASES, describe_pass, measure_pass
from steps import Step, trainer_step
from workloads import GENERATED, Workload, find_workload, workload_names

NEGATIVES = 32
PRESETS = ("nbfnet", "default")  # whose steps are timed beside the engine
PLAN_BUDGET = 150e6  # bytes per plan


@dataclass(frozen=True)
class Timing:
    """What one graph cost; milliseconds per query, megabytes."""

    graph: str
    triples: int
    entities: int
    train: float
    train_cpu: float  # of all cores together
    rank: float | None
    rank_cpu: float | None
    updates: float  # slots per training query
    messages: float
    memory: float  # peak of the process while the sparse engine trained and ranked
    step: dict[str, float] = field(default_factory=dict)  # whole steps of the trainer, by preset
    step_cpu: dict[str, float] = field(default_factory=dict)
    dense_train: float | None = None
    dense_train_batch: int | None = None
    dense_rank: float | None = None
    dense_rank_batch: int | None = None


class Model:
    """An encoder, a decoder and Adam on a workload's graph."""

    def __init__(self, work: Workload) -> None:
        generator = torch.Generator().manual_seed(0)
        self.net = KGCF(work.settings, DecoderSettings(treatment=False), work.graph.relation_count, generator)
        self.encoder, self.decoder = self.net.encoder, self.net.decoder
        self.parameters = list(self.net.parameters())
        self.optimiser = torch.optim.Adam(self.parameters, lr=5e-3, fused=True)


def loss_of(logits: Tensor) -> Tensor:
    """The positive, in column 0, against the others; a sum over the queries."""
    target = torch.zeros_like(logits)
    target[:, 0] = 1
    return functional.binary_cross_entropy_with_logits(logits, target, reduction="none").mean(1).sum()


def add_up(sums: list[Tensor], found: Sequence[Tensor | None]) -> None:
    """Add gradients in place; None is a parameter that had no part."""
    for total, gradient in zip(sums, found, strict=True):
        if gradient is not None:
            total += gradient


def cut(count: int, parts: int) -> list[slice]:
    """Consecutive slices of nearly equal length."""
    return [slice(begin, end) for begin, end in pairwise(round(i * count / parts) for i in range(parts + 1))]


def part_of(hidden: HiddenTriples, part: slice) -> HiddenTriples:
    """The hidden sets of some consecutive queries."""
    offsets = hidden.offsets[part.start : part.stop + 1]
    return HiddenTriples(offsets - offsets[0], hidden.triples[offsets[0] : offsets[-1]])


@dataclass(frozen=True)
class Cost:
    """Milliseconds per query: of the clock, and of all processor cores together."""

    wall: float
    cpu: float


def costs_by_turns(runs: dict[str, Callable[[int], object]], repeats: int, warm: int, queries: int) -> dict[str, Cost]:
    """What each run(i) costs per query, the median over `repeats` after `warm` rounds that do not count."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for i in range(warm + repeats):
        for name, run in runs.items():
            start = time.perf_counter(), time.process_time()
            run(i)
            times[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    medians = {name: np.median(values[warm:], axis=0) * 1e3 / queries for name, values in times.items()}
    return {name: Cost(float(wall), float(cpu)) for name, (wall, cpu) in medians.items()}


def median_cost(run: Callable[[int], object], repeats: int, warm: int, queries: int) -> Cost:
    """What run(i) costs per query."""
    return costs_by_turns({"run": run}, repeats, warm, queries)["run"]


def trainer_steps(work: Workload) -> dict[str, Step]:
    """The trainer's own steps on a benchmark, with the engine's batch size and negatives; none on generated graphs."""
    if work.name in GENERATED:
        return {}
    data = registry.load(work.name)
    same = (f"objective.negatives={NEGATIVES}", f"training.batch_size={work.batch_size}")
    with tempfile.TemporaryDirectory(prefix="kgcf-benchmark-") as scratch:
        return {preset: trainer_step(data, preset, same, Path(scratch)) for preset in PRESETS}


def time_training(
    work: Workload, threads: int, repeats: int, others: dict[str, Step]
) -> tuple[dict[str, Cost], float, float]:
    """Costs of the sparse engine and of the other steps; updates and messages per training query of the engine."""
    model = Model(work)
    planners = [Planner(work.graph, work.settings.layers) for _ in range(threads)]
    batches = [work.batch(seed, work.batch_size, NEGATIVES + 1) for seed in range(repeats + 2)]
    counts = np.zeros(3)
    budget = Budget(PLAN_BUDGET, work.settings.width)

    with Workers(threads) as workers:

        def step(index: int) -> None:
            heads, relations, candidates, hidden = batches[index]

            def differentiate(worker: int, part: slice) -> list[Tensor]:
                asked = heads[part], relations[part], candidates[part], part_of(hidden, part)
                sums = [torch.zeros_like(parameter) for parameter in model.parameters]
                for plan in planners[worker].parts(*asked, budget):
                    counts[:] += len(plan), plan.slot_count, plan.edge_count
                    loss = loss_of(model.net.decode(model.net.encode(plan), None)) / work.batch_size
                    add_up(sums, torch.autograd.grad(loss, model.parameters, allow_unused=True))
                return sums

            first, *rest = workers.map(differentiate, cut(work.batch_size, threads))
            for part in rest:
                add_up(first, part)
            for parameter, gradient in zip(model.parameters, first, strict=True):
                parameter.grad = gradient
            model.optimiser.step()

        costs = costs_by_turns({"engine": step, **others}, repeats, 2, work.batch_size)
    return costs, counts[1] / counts[0], counts[2] / counts[0]


def time_ranking(work: Workload, threads: int, repeats: int) -> Cost:
    """Cost per query of ranking all entities with the sparse engine."""
    model = Model(work)
    planners = [Planner(work.graph, work.settings.layers) for _ in range(threads)]
    contexts = all_contexts(work.graph) if reads_contexts(model.decoder) else None
    background = make_background(model.decoder, work.graph.entity_count, contexts)
    size = work.rank_batch * threads
    batches = [work.batch(seed, size, 1) for seed in range(repeats + 2)]

    with Workers(threads) as workers:

        def step(index: int) -> None:
            heads, relations, _, _ = batches[index]

            def rank(worker: int, part: slice) -> None:
                plan = planners[worker].plan(heads[part], relations[part], None)
                score_all(model.encoder, model.decoder, plan, background=background)

            workers.map(rank, cut(size, threads))

        return median_cost(step, repeats, 2, size)


def time_dense(work: Workload, size: int, training: bool, repeats: int) -> float:
    """Milliseconds per query of the dense reference at one batch size."""
    model = Model(work)
    edges = DenseEdges.build(work.graph, model.encoder.query.weight)
    batches = [work.batch(seed, size, NEGATIVES + 1) for seed in range(repeats + 1)]

    def step(index: int) -> None:
        heads, relations, candidates, hidden = batches[index]
        visible = hidden if training else None
        asked = torch.from_numpy(heads), torch.from_numpy(relations)
        with torch.set_grad_enabled(training):
            result = propagate_densely(model.encoder, edges, *asked, visible)
            logits = score_densely(model.decoder, result)  # [B, N]
        if training:
            model.optimiser.zero_grad()
            loss_of(logits.gather(1, torch.from_numpy(candidates))).backward()  # type: ignore[no-untyped-call]
            model.optimiser.step()

    return median_cost(step, repeats, 1, size).wall


def best_dense(work: Workload, training: bool, repeats: int) -> tuple[float, int]:
    """The dense reference at the batch size that suits it best, and that size."""
    times = {size: time_dense(work, size, training, repeats) for size in work.dense_batches}
    best = min(times, key=lambda size: times[size])
    return times[best], best


def measure_sparse(work: Workload, threads: int, quick: bool, steps: bool) -> Timing:
    """Time the sparse engine, and beside it the trainer's steps."""
    others = trainer_steps(work) if steps else {}
    reset_peak_memory()
    costs, updates, messages = time_training(work, threads, 5 if quick else work.repeats, others)
    train = costs.pop("engine")
    rank = time_ranking(work, threads, 2 if quick else 7) if work.ranked else None
    return Timing(
        graph=work.name,
        triples=len(work.graph),
        entities=work.graph.entity_count,
        train=train.wall,
        train_cpu=train.cpu,
        rank=None if rank is None else rank.wall,
        rank_cpu=None if rank is None else rank.cpu,
        updates=updates,
        messages=messages,
        memory=peak_memory(),
        step={preset: cost.wall for preset, cost in costs.items()},
        step_cpu={preset: cost.cpu for preset, cost in costs.items()},
    )


def add_dense(timing: Timing, work: Workload, quick: bool) -> Timing:
    """Time the dense reference beside the sparse engine."""
    if not work.dense_batches:
        return timing
    train, train_batch = best_dense(work, True, 1 if quick else 3)
    rank, rank_batch = best_dense(work, False, 1 if quick else 3)
    return replace(
        timing, dense_train=train, dense_train_batch=train_batch, dense_rank=rank, dense_rank_batch=rank_batch
    )


def describe(timing: Timing) -> str:
    """One line of the table, with ratios where the dense reference ran."""
    line = f"{timing.graph:14s} {timing.updates:9,.0f} {timing.messages:11,.0f}"
    line += f"  train {timing.train:8.2f} ms, {timing.train_cpu:7.2f} of cores"
    for preset, wall in timing.step.items():
        line += f"; step of {preset} {wall:.2f} ms ({wall / timing.train:.2f}×), {timing.step_cpu[preset]:.2f} of cores"
    if timing.dense_train is not None:
        line += f" (dense {timing.dense_train:8.0f}, batch {timing.dense_train_batch}: "
        line += f"{timing.dense_train / timing.train:6.1f}×)"
    if timing.rank is not None:
        line += f"  rank {timing.rank:7.2f} ms, {timing.rank_cpu:7.2f} of cores"
    if timing.dense_rank is not None and timing.rank is not None:
        line += f" (dense {timing.dense_rank:7.0f}, batch {timing.dense_rank_batch}: "
        line += f"{timing.dense_rank / timing.rank:5.1f}×)"
    return line + f"  peak {timing.memory:,.0f} MB"


def read_results(path: Path) -> dict[str, object]:
    """What a file holds already; nothing where there is none."""
    found: dict[str, object] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def time_passes(threads: int, graphs: list[str] | None, quick: bool, dense: bool, path: Path | None) -> None:
    """Measure passes, print a line each, and write them beside the other figures of the file."""
    timings = []
    for case in CASES:
        if graphs is None or case.graph in graphs:
            timings.append(measure_pass(case, threads, quick, dense))
            print(describe_pass(timings[-1]), flush=True)
    if path is not None:
        passes = {"protocol": describe_protocol(threads), "timings": [asdict(timing) for timing in timings]}
        path.write_text(json.dumps(read_results(path) | {"passes": passes}, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Measure the graphs asked for, print a line each, and write the figures with their protocol."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--graph", action="append", choices=workload_names(), help="repeat for several; default all")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--no-steps", action="store_true", help="leave the trainer's own steps out")
    parser.add_argument("--no-dense", action="store_true", help="leave the dense reference out")
    parser.add_argument("--passes", action="store_true", help="time passes by depth and negatives instead")
    parser.add_argument("--json", type=Path, help="write figures and protocol to this file")
    options = parser.parse_args()
    if options.passes:
        time_passes(options.threads, options.graph, options.quick, not options.no_dense, options.json)
        return
    print("graph            updates    messages  (per training query)")
    names, timings = options.graph or workload_names(), []
    for name in names:  # the sparse engine first: what the dense one leaves in memory would count
        timings.append(
            measure_sparse(find_workload(name, dense=False), options.threads, options.quick, not options.no_steps)
        )
        print(describe(timings[-1]), flush=True)
    for index, name in enumerate(names):
        work = find_workload(name, dense=not options.no_dense) if name not in GENERATED else None
        if work is not None and work.dense_batches:
            timings[index] = add_dense(timings[index], work, options.quick)
            print(describe(timings[index]), flush=True)
    if options.json:
        kept = read_results(options.json)
        content = {"protocol": describe_protocol(options.threads), "timings": [asdict(timing) for timing in timings]}
        options.json.write_text(json.dumps(kept | content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
