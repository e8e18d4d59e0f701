"""Are the paths the curated ones? Gold mechanisms of drugmechdb against explanations, shortest and random paths.

All rivals are judged alike: whole paths and edges among the first 1, 5, 10 paths, and, because good paths share edges
and random ones hardly do, precision and recall of the first 5, 10, 20 distinct edges that each rival travels. Random
paths have the lengths of the explanation's, each is drawn once; ties between shortest paths are broken at random. A
second table leaves out paths over `indicated_for`, which no curated mechanism uses, for all rivals.
"""

import gzip
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.data import registry
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError
from kgcf.explanation.candidates import gather_candidates
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.how import How
from kgcf.explanation.lattice import Lattice
from kgcf.explanation.necessity import choose_paths, drop_and_gain, try_paths
from kgcf.explanation.paths import Path, RandomPaths, find_best_paths
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.progress import showing

DEPTHS = (1, 5, 10)
EDGES = (5, 10, 20)
KEPT = 20  # paths per rival, so that there are edges enough
TRIALS = 10  # draws for one more distinct random path
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A curated mechanism: the observed triples it consists of, and how many of its edges are not observed."""

    triples: frozenset[int]
    missing: int


@dataclass(frozen=True, eq=False)
class Ground:
    """Where paths are looked for: a lattice, and what its edges count by both kinds of gradients."""

    lattice: Lattice
    gradient: NDArray[np.float64]
    integrated: NDArray[np.float64]

    @classmethod
    def of(cls, case: Case) -> "Ground":
        """All of a case."""
        return cls(case.lattice, case.importance.values, case.integrated.values)

    def without(self, relation: int, relation_count: int) -> "Ground":
        """The same ground without the edges of one relation, in both directions."""
        kept = self.lattice.relations % relation_count != relation
        before = np.concatenate([[0], np.cumsum(kept)])
        lattice = replace(
            self.lattice,
            offsets=before[self.lattice.offsets],
            sources=self.lattice.sources[kept],
            relations=self.lattice.relations[kept],
            triples=self.lattice.triples[kept],
            layers=self.lattice.layers[kept],
        )
        return Ground(lattice, self.gradient[kept], self.integrated[kept])


def measure_gold(observed: ObservedGraph, queries: NDArray[np.int32], remove: Remove, seed: int) -> dict[str, Any]:
    """How often the paths found are curated ones, for the pairs that have a whole curated path in the graph."""
    mechanisms = read_mechanisms(observed.graph, observed.entities, observed.relations)
    generator = np.random.default_rng(seed)
    tables: dict[str, dict[str, list[dict[str, float]]]] = {
        "all paths": defaultdict(list),
        "paths without indicated_for": defaultdict(list),
    }
    asked = 0
    with showing("gold mechanisms", len(queries)) as advance:
        for h, r, t in queries.tolist():
            advance(1)
            gold = mechanisms.get((h, t), [])
            asked += bool(gold)
            if not gold:
                continue
            case = open_case(observed, h, r, t, remove)
            if not any(has_path(case, mechanism) for mechanism in gold):
                continue
            ground = Ground.of(case)
            grounds = (ground, ground.without(r, observed.graph.relation_count))
            for table, place in zip(tables.values(), grounds, strict=True):
                for name, paths in rivals(case, place, generator):
                    table[name].append(compare(paths, gold))
    found = len(next(iter(tables["all paths"].values()), []))
    return {
        "pairs_with_mechanism": asked,
        "pairs_that_can_be_found": found,
        **{title: {name: means(rows) for name, rows in table.items()} for title, table in tables.items()},
    }


def means(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of every figure."""
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def rivals(case: Case, ground: Ground, generator: np.random.Generator) -> Iterator[tuple[str, Sequence[Path]]]:
    """The paths that compete: by re-scoring, random ones of their lengths, by gradients, and the shortest."""
    best = rescored(case, ground)
    yield "removal", best
    yield "random, lengths of removal", draw_distinct(ground, best, generator)
    yield "gradient", find_best_paths(ground.lattice, ground.gradient, KEPT).paths
    yield "integrated", find_best_paths(ground.lattice, ground.integrated, KEPT).paths
    ties = generator.random(len(ground.lattice.sources)) * 1e-6
    yield "shortest", find_best_paths(ground.lattice, -1.0 - ties, KEPT, "sum").paths


def rescored(case: Case, ground: Ground) -> list[Path]:
    """The paths that an explanation would show if these were all, then the other candidates by their value."""
    tried = try_paths(case, gather_candidates(ground.lattice, ground.gradient, ground.integrated, How().candidates))
    if not tried.paths:
        return []
    chosen = choose_paths(case, tried, How().top)
    order = np.argsort(-drop_and_gain(tried.scored), kind="stable")
    return [tried.paths[i] for i in (*chosen, *(int(i) for i in order if i not in chosen))][:KEPT]


def draw_distinct(ground: Ground, best: Sequence[Path], generator: np.random.Generator) -> list[Path]:
    """Random paths of the lengths of the best ones, in their order, none twice; fewer where there are no others."""
    source = RandomPaths(ground.lattice, np.zeros(len(ground.lattice.sources)))
    found: dict[tuple[int, ...], Path] = {}
    for path in best:
        for _ in range(TRIALS):
            drawn = source.draw(len(path), generator)
            if drawn is not None and drawn.triples not in found:
                found[drawn.triples] = drawn
                break
    return list(found.values())


def compare(paths: Sequence[Path], gold: Sequence[Mechanism]) -> dict[str, float]:
    """Whole: one of the first k paths lies within a mechanism. Edges: how many are curated, how many curated ones."""
    curated = frozenset[int]().union(*(mechanism.triples for mechanism in gold))
    found: dict[str, float] = {}
    for k in DEPTHS:
        sets = [frozenset(path.triples) for path in paths[:k]]
        found[f"whole@{k}"] = float(any(s <= mechanism.triples for s in sets for mechanism in gold))
        found |= edge_figures(f"@{k}", frozenset[int]().union(*sets), curated)
    travelled = list(dict.fromkeys(triple for path in paths for triple in path.triples))
    for n in EDGES:
        found |= edge_figures(f"@{n}_edges", frozenset(travelled[:n]), curated)
    return found


def edge_figures(suffix: str, travelled: frozenset[int], curated: frozenset[int]) -> dict[str, float]:
    """The share of the edges travelled that are curated, the share of the curated that are travelled, and how many."""
    hits = len(travelled & curated)
    return {
        f"edge_precision{suffix}": hits / max(len(travelled), 1),
        f"edge_recall{suffix}": hits / max(len(curated), 1),
        f"edges{suffix}": float(len(travelled)),
    }


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
