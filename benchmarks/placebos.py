"""How often placebos raise a false alarm: the three-error rule over many seeds, overall and relation by relation.

    python benchmarks/placebos.py world umls wn18rr:v1 --seeds 50 --first 1000 --output results/placebos.json

A seed draws its own pairs and makes its own two placebos; the seeds of a graph share a few entity spaces. A placebo has
no effect by construction, so each `!` is a false alarm. `error` is the mean of the errors that the rule used, `spread`
the standard deviation of the estimates over the seeds: a sound error is not far below its spread.
Nothing is fitted here; seeds that were looked at while a rule was chosen must not be used again to judge it.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from kgcf.causal.counterfactual.effects import KINDS, Effect, Effects, estimate_effects
from kgcf.causal.embedding import SpaceSettings, embed_entities
from kgcf.causal.treatment import assign_treatment
from kgcf.data.dataset import Dataset
from kgcf.data.hiding import Remove
from kgcf.data.source import read
from kgcf.machine.provenance import provenance
from kgcf.storage import write_json
from kgcf.training.batches import choose_removal

PLACEBOS = KINDS[1:]


def run_seeds(
    data: Dataset, seeds: list[int], spaces: list[int], pairs: int, threads: int, remove: Remove
) -> list[Effects]:
    """The effects of every seed; the seeds take turns with the entity spaces, which have seeds of their own."""
    graph = data.graph
    treatment = assign_treatment(graph, threads=threads)
    found: dict[int, Effects] = {}
    for index, space_seed in enumerate(spaces[: len(seeds)]):
        space = embed_entities(graph, SpaceSettings(seed=space_seed), threads)
        for seed in seeds[index :: len(spaces)]:
            found[seed] = estimate_effects(graph, space, treatment, seed, pairs, threads, remove=remove)
        print(f"{data.name}: {len(found)} of {len(seeds)} seeds", file=sys.stderr, flush=True)
    return [found[seed] for seed in seeds]


def count_alarms(effects: list[Effect]) -> dict[str, Any]:
    """How many were judged and fired, with means and spread of the estimates and the mean error."""
    judged = [effect for effect in effects if effect.vanishes is not None]
    fired = sum(effect.vanishes is False for effect in judged)
    estimates = np.array([effect.estimate for effect in judged], dtype=np.float64)
    errors = np.array([effect.standard_error for effect in judged], dtype=np.float64)
    return {
        "judged": len(judged),
        "fired": fired,
        "rate": fired / len(judged) if judged else None,
        "mean": float(estimates.mean()) if judged else None,
        "spread": float(estimates.std(ddof=1)) if len(judged) > 1 else None,
        "error": float(errors.mean()) if judged else None,
    }


def describe_graph(data: Dataset, runs: list[Effects]) -> dict[str, Any]:
    """Alarms of one graph by kind: overall, over all relations together, and of the relations that fired."""
    result: dict[str, Any] = {}
    for kind in PLACEBOS:
        by_relation = {
            relation: count_alarms([getattr(run.per_relation[relation], kind) for run in runs])
            for relation in runs[0].per_relation
        }
        judged = sum(part["judged"] for part in by_relation.values())
        fired = sum(part["fired"] for part in by_relation.values())
        loud = {data.relations.display(r): part for r, part in by_relation.items() if part["fired"]}
        result[kind] = {
            "overall": count_alarms([getattr(run.overall, kind) for run in runs]),
            "relations": {"judged": judged, "fired": fired, "rate": fired / judged if judged else None},
            "relations_that_fired": loud,
        }
    return result


def main() -> None:
    """Run the graphs one after another, print the rates and write them with their protocol."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["world", "umls", "wn18rr:v1"])
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--seeds", type=int, default=50, help="how many seeds")
    parser.add_argument("--spaces", nargs="+", type=int, default=[0], help="seeds of the entity spaces")
    parser.add_argument("--pairs", type=int, default=2_000, help="pairs per relation")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, help="write JSON here [default: print it]")
    chosen = parser.parse_args()
    seeds = list(range(chosen.first, chosen.first + chosen.seeds))
    protocol = {**provenance(), "seeds": [seeds[0], seeds[-1]], "spaces": chosen.spaces, "pairs": chosen.pairs}
    graphs: dict[str, Any] = {}
    for name in chosen.graphs:
        data = read(name)
        remove = choose_removal(data.graph, data.valid.queries)
        runs = run_seeds(data, seeds, chosen.spaces, chosen.pairs, chosen.threads, remove)
        graphs[name] = {"remove": remove, **describe_graph(data, runs)}
        for kind in PLACEBOS:
            overall, relations = graphs[name][kind]["overall"], graphs[name][kind]["relations"]
            print(f"{name:10s} {kind:20s} overall {overall['fired']} of {overall['judged']}", end="")
            print(f", relations {relations['fired']} of {relations['judged']}", flush=True)
        if chosen.output is not None:
            write_json(chosen.output, {"protocol": protocol, "graphs": graphs})
    if chosen.output is None:
        print(json.dumps({"protocol": protocol, "graphs": graphs}, indent=2))


if __name__ == "__main__":
    main()
