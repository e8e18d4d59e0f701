"""Time and peak memory of every step of the causal stage, and how they grow with the number of triples.

    python benchmarks/causal.py umls wn18rr fb15k-237 --shares 0.25 1 --output causal.json

Every graph runs in a process of its own, after a warm-up that compiles the kernels. `seconds` is wall time,
`cpu_seconds` that of all threads together; the peak is the largest resident size during the step.
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kgcf.causal.counterfactual import diagnose, match_pairs
from kgcf.causal.embedding import SpaceSettings, embed_entities
from kgcf.causal.embedding.walks import walk_round
from kgcf.causal.relation_graphs import relation_graphs
from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.data import registry
from kgcf.data.dataset import Dataset, transductive
from kgcf.machine.provenance import provenance
from kgcf.storage import write_json

Steps = dict[str, dict[str, float]]


@contextmanager
def measured(steps: Steps, name: str) -> Iterator[None]:
    """Record wall time, processor time and peak memory of the block."""
    _reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    steps[name] = {
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "peak_mib": round(_peak_mib()),
    }
    print(f"  {name}: {steps[name]}", file=sys.stderr, flush=True)


def _reset_peak() -> None:
    """Forget the peak so far, where the system can (Linux); elsewhere peaks only ever grow."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _peak_mib() -> float:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def part_of(data: Dataset, share: float, seed: int = 0) -> Dataset:
    """The dataset with a random share of its train triples; entities and relations stay."""
    count = max(1, round(share * len(data.graph)))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(data.graph))[:count])
    parts = (data.graph.triples[chosen], data.valid.queries, data.test.queries)
    return transductive(data.name, data.entities, data.relations, parts)


def run_steps(data: Dataset, threads: int, pairs: int) -> Steps:
    """Treatment, leave-one-out, walks, embedding, matching in both modes, diagnostics."""
    steps: Steps = {}
    graph, settings = data.graph, SpaceSettings()
    with measured(steps, "treatment"):
        assign_treatment(graph, TreatmentSettings(leave_one_out=False), threads=threads)
    with measured(steps, "treatment with leave-one-out"):
        treatment = assign_treatment(graph, threads=threads)
        treatment.treated_triples(graph.triples, leave_one_out=True)
    with measured(steps, "walks, one thread"):
        generator = np.random.default_rng(0)
        for part in relation_graphs(graph):
            for _ in range(settings.walks):
                walk_round(part, settings.length, settings.p, settings.q, generator)
    with measured(steps, "embedding, walks and skip-gram"):
        space = embed_entities(graph, settings, threads)
    with measured(steps, "matching, all"):
        match_pairs(graph.triples, graph, space, treatment, "all", threads=threads)
    with measured(steps, "matching, observed"):
        table = match_pairs(graph.triples, graph, space, treatment, "observed", threads=threads)
    with measured(steps, f"diagnostics, {pairs:,} pairs per relation"):
        diagnose(data, table, space, treatment, pairs_per_relation=pairs, threads=threads)
    return steps


def run_graph(name: str, shares: list[float], threads: int, pairs: int) -> list[dict[str, Any]]:
    """All shares of one graph, after a warm-up on a handful of its triples."""
    data = registry.load(name)
    print(f"{name}: warming up", file=sys.stderr, flush=True)
    warm = part_of(data, min(1.0, 400 / len(data.graph)))
    with Path(os.devnull).open("w", encoding="ascii") as nowhere:
        shown, sys.stderr = sys.stderr, nowhere
        run_steps(warm, threads, 20)
        sys.stderr = shown
    runs = []
    for share in shares:
        part = part_of(data, share)
        print(f"{name}, {len(part.graph):,} triples", file=sys.stderr, flush=True)
        sizes = {"triples": len(part.graph), "entities": part.graph.entity_count}
        runs.append({"graph": name, "share": share, **sizes, "steps": run_steps(part, threads, pairs)})
    return runs


def growth(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Per graph and step the exponent x in cpu_seconds ∝ triples^x, from the smallest to the largest share."""
    found: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(run["graph"] for run in runs):
        mine = sorted((run for run in runs if run["graph"] == name), key=lambda run: int(run["triples"]))
        first, last = mine[0], mine[-1]
        if first["triples"] == last["triples"]:
            continue
        ratio = np.log(last["triples"] / first["triples"])
        times = {
            step: (first["steps"][step]["cpu_seconds"], last["steps"][step]["cpu_seconds"]) for step in last["steps"]
        }
        found[name] = {
            s: round(float(np.log(b / a) / ratio), 2) for s, (a, b) in times.items() if a > 0.02 and b > 0.02
        }
    return found


def main() -> None:
    """Run the graphs one after another and write the figures with their protocol."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["umls", "wn18rr", "fb15k-237"])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.25, 0.5, 1.0], help="shares of the train triples")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--pairs", type=int, default=2_000, help="pairs per relation for the effects")
    parser.add_argument("--output", type=Path, help="write JSON here [default: print it]")
    chosen = parser.parse_args()
    runs: list[dict[str, Any]] = []
    context = multiprocessing.get_context("spawn")
    for name in chosen.graphs:
        with context.Pool(1) as pool:
            runs += pool.apply(run_graph, (name, chosen.shares, chosen.threads, chosen.pairs))
    load = [round(value, 2) for value in os.getloadavg()]
    protocol = {
        **provenance(),
        "threads": chosen.threads,
        "load_average_at_end": load,
        "space": SpaceSettings().model_dump(),
    }
    result = {"protocol": protocol, "runs": runs, "growth_exponents": growth(runs)}
    if chosen.output is not None:
        write_json(chosen.output, result)
    else:
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
