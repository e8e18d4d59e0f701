"""Do explanations matter, and are they the right ones? The deletion curve of a run, and gold mechanisms on drugmechdb.

Run: python benchmarks/explanations.py RUN [--triples 200] [--seed 0] [--output results.json]
The observed graph is train; test triples are asked for their tails. Both ways to count an edge are measured: in the
layer of its step (`own`) and over all layers (`all`). Gold mechanisms are looked for if the run is one on drugmechdb.
"""

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.data import registry
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.deletion import KINDS, DeletionCurve, Removed, trace_deletions
from kgcf.explanation.paths import Layers
from kgcf.explanation.paths import Path as EntityPath
from kgcf.prediction.observed import ObservedGraph
from kgcf.progress import showing
from kgcf.provenance import provenance
from kgcf.run import Run
from kgcf.training.batches import Remove

WAYS: tuple[Layers, ...] = ("own", "all")
DEPTHS = (1, 5, 10)
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A curated mechanism: the observed triples it consists of, and how many of its edges are not observed."""

    triples: frozenset[int]
    missing: int


def main() -> None:
    """Measure one run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=Path)
    parser.add_argument("--triples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    run = Run.open(chosen.run)
    observed = run.observe(None, "train")
    remove: Remove = "pair" if run.settings.training.remove == "pair" else "triple"
    report: dict[str, Any] = {"run": chosen.run.name, "dataset": run.data.name, "provenance": provenance()}
    questions = draw_questions(run.data.test.queries, chosen.triples, chosen.seed)
    report["deletion"] = {way: measure_deletion(observed, questions, remove, way, chosen.seed) for way in WAYS}
    if run.data.name == "drugmechdb":
        report["gold"] = measure_gold(run, observed, remove, chosen.seed)
    text = json.dumps(report, indent=2)
    print(text)
    if chosen.output is not None:
        chosen.output.write_text(text + "\n", encoding="utf-8")


def draw_questions(queries: NDArray[np.int32], count: int, seed: int) -> NDArray[np.int32]:
    """Some of the test triples, at random."""
    return queries[np.random.default_rng(seed).permutation(len(queries))[:count]]


def measure_deletion(
    observed: ObservedGraph, questions: NDArray[np.int32], remove: Remove, way: Layers, seed: int
) -> dict[str, Any]:
    """The deletion curve over the questions that a path answers."""
    with showing(f"deletion, layers {way}", len(questions)) as advance:
        cases = (open_case(observed, h, r, t, remove, way) for h, r, t in questions.tolist())
        curve = trace_deletions(cases, np.random.default_rng(seed), advance=advance)
    return {
        "triples": len(curve),
        "without_path": curve.without_path,
        "without_random": curve.without_random,
        "random_is_top": curve.same,
        "points": [point(curve, i, seed) for i in range(len(curve.counts))] if len(curve) else [],
    }


def point(curve: DeletionCurve, index: int, seed: int) -> dict[str, Any]:
    """One point of the curve: mean drops of the logit, cut pairs, and paired differences with 95 % intervals."""
    found: dict[str, Any] = {"paths": curve.counts[index], "edges": float(curve.removed[:, index].mean())}
    for kind in KINDS:
        found[f"{kind}_drop"] = float(curve.drops[kind][:, index].mean())
        found[f"{kind}_cut"] = float(curve.cut[kind][:, index].mean())
    for other in ("random", "shortest"):
        control: Removed = "random" if other == "random" else "shortest"
        for connected in (False, True):
            interval = curve.difference(index, np.random.default_rng(seed), control, connected)
            key = f"top_minus_{other}" + ("_where_a_path_is_left" if connected else "")
            found[key] = None if interval is None else [interval.mean, interval.low, interval.high]
    return found


def measure_gold(run: Run, observed: ObservedGraph, remove: Remove, seed: int) -> dict[str, Any]:
    """How often the paths found are curated ones, for test pairs that have a whole curated path in the graph."""
    mechanisms = read_mechanisms(observed.graph, observed.entities, run.data.relations)
    generator = np.random.default_rng(seed)
    hits: dict[str, list[dict[str, float]]] = defaultdict(list)
    asked = 0
    with showing("gold mechanisms", len(run.data.test.queries)) as advance:
        for h, r, t in run.data.test.queries.tolist():
            advance(1)
            gold = mechanisms.get((h, t), [])
            asked += bool(gold)
            cases = {way: open_case(observed, h, r, t, remove, way) for way in WAYS}
            if not any(has_path(cases["own"], mechanism) for mechanism in gold):
                continue
            for name, paths in rivals(cases, generator):
                hits[name].append(compare(paths, gold))
    means = {name: {key: float(np.mean([row[key] for row in rows])) for key in rows[0]} for name, rows in hits.items()}
    return {"pairs_with_mechanism": asked, "pairs_that_can_be_found": len(next(iter(hits.values()), [])), **means}


def rivals(cases: dict[Layers, Case], generator: np.random.Generator) -> Iterator[tuple[str, Sequence[EntityPath]]]:
    """The paths that compete: both explanations, the shortest paths, random ones of the lengths of the best."""
    best = {way: case.best_paths(max(DEPTHS)).paths for way, case in cases.items()}
    for way, paths in best.items():
        yield f"explanation, layers {way}", paths
    yield "shortest", cases["own"].shortest_paths(max(DEPTHS))
    for way, paths in best.items():
        drawn = cases["own"].random_paths.draw_like(paths, generator)
        yield f"random, lengths of {way}", [path for path in drawn if path is not None]


def compare(paths: Sequence[EntityPath], gold: Sequence[Mechanism]) -> dict[str, float]:
    """Whole: one of the first k paths lies within a mechanism. Edges: share of the paths' edges, and of the gold."""
    curated = frozenset[int]().union(*(mechanism.triples for mechanism in gold))
    found = {}
    for k in DEPTHS:
        sets = [frozenset(path.triples) for path in paths[:k]]
        travelled = frozenset[int]().union(*sets)
        found[f"whole@{k}"] = float(any(s <= mechanism.triples for s in sets for mechanism in gold))
        found[f"edge_precision@{k}"] = len(travelled & curated) / max(len(travelled), 1)
        found[f"edge_recall@{k}"] = len(travelled & curated) / max(len(curated), 1)
    return found


def has_path(case: Case, mechanism: Mechanism) -> bool:
    """Whether the model could show a path within the mechanism: head to tail, in at most L edges."""
    graph, reach = case.observed.graph, {case.head}
    ends = [graph.triples[triple][[0, 2]].tolist() for triple in mechanism.triples - set(case.hidden.triples.tolist())]
    for _ in range(case.observed.model.encoder.settings.layers):
        reach |= {b for h, t in ends for a, b in ((h, t), (t, h)) if a in reach}
    return case.tail in reach


def read_mechanisms(graph: KnowledgeGraph, entities: Vocabulary, relations: Vocabulary) -> dict[Pair, list[Mechanism]]:
    """The curated mechanisms of all pairs; edges that the graph does not have are counted."""
    path = registry.find_extra("drugmechdb", "mechanisms.tsv")
    if path is None:
        raise DataError("mechanisms.tsv of drugmechdb is not at hand. Get it with: kgcf datasets get drugmechdb")
    entity = {label: i for i, label in enumerate(entities.labels())}
    relation = {label: i for i, label in enumerate(relations.labels())}
    groups: dict[tuple[str, str, str], list[tuple[int, int, int]]] = defaultdict(list)
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in content.decode("utf-8").splitlines():
        _, name, drug, disease, h, r, t = line.split("\t")
        groups[name, drug, disease].append((entity.get(h, -1), relation.get(r, -1), entity.get(t, -1)))
    found: dict[Pair, list[Mechanism]] = defaultdict(list)
    for (_, drug, disease), rows in groups.items():
        if drug in entity and disease in entity:
            known = [row for row in rows if min(row) >= 0]
            edges = graph.find_edges(*np.array(known, dtype=np.int64).reshape(-1, 3).T)
            triples = graph.edge_triples[edges[edges >= 0]] % len(graph)
            mechanism = Mechanism(frozenset(triples.tolist()), len(rows) - len(triples))
            found[entity[drug], entity[disease]].append(mechanism)
    return found


if __name__ == "__main__":
    main()
