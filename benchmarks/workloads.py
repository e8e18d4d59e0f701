"""The graphs the engine is timed on, and random training queries about them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data import registry
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, hide_pairs, hide_triples
from kgcf.propagation.layers.encoder import EncoderSettings

Queries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], HiddenTriples]

GENERATED = {"generated-1m": 1_000_000, "generated-4m": 4_000_000, "generated-16m": 16_000_000}


@dataclass(frozen=True, eq=False)
class Workload:
    """A graph, the model that suits it, and how many queries to run at once."""

    name: str
    graph: KnowledgeGraph
    settings: EncoderSettings
    remove: str  # triple or pair
    batch_size: int
    rank_batch: int  # per thread
    dense_batches: tuple[int, ...]  # sizes the dense reference may choose from; empty: it does not run
    repeats: int
    ranked: bool = True

    def batch(self, seed: int, size: int, candidate_count: int) -> Queries:
        """Queries about random triples, half of them turned round; the answer stands in column 0."""
        rng = np.random.default_rng(seed)
        triples = self.graph.triples[rng.integers(0, len(self.graph), size)].astype(np.int64)
        turned = rng.random(size) < 0.5
        heads = np.where(turned, triples[:, 2], triples[:, 0])
        relations = triples[:, 1] + turned * self.graph.relation_count
        candidates = rng.integers(0, self.graph.entity_count, (size, candidate_count))
        candidates[:, 0] = np.where(turned, triples[:, 0], triples[:, 2])
        if self.remove == "pair":
            return heads, relations, candidates, hide_pairs(self.graph, heads, candidates)
        return heads, relations, candidates, hide_triples(self.graph, heads, relations, candidates[:, 0])


def workload_names() -> list[str]:
    """The graphs there are."""
    return ["wn18rr", "fb15k-237", *GENERATED]


def find_workload(name: str, dense: bool) -> Workload:
    """Load or generate a graph."""
    if name == "fb15k-237":
        settings = EncoderSettings(dependent=True)
        return Workload(name, registry.load(name).graph, settings, "pair", 32, 1, (1, 2) if dense else (), 5)
    graph = registry.load("wn18rr").graph
    settings = EncoderSettings(dependent=False)
    if name == "wn18rr":
        return Workload(name, graph, settings, "triple", 32, 4, (1, 2, 4) if dense else (), 30)
    larger = enlarge(graph, GENERATED[name], np.random.default_rng(0))
    return Workload(name, larger, settings, "triple", 32, 1, (), 20, ranked=False)


def enlarge(graph: KnowledgeGraph, triple_count: int, rng: np.random.Generator) -> KnowledgeGraph:
    """About `triple_count` random triples in which entities have the degrees they have in a smaller graph.

    Every entity is copied equally often with its number of triples as head and as tail; heads and tails are
    then paired at random, and relations drawn with their frequencies.
    """
    copies = round(triple_count / len(graph))
    count = copies * graph.entity_count
    heads = np.tile(np.bincount(graph.triples[:, 0], minlength=graph.entity_count), copies)
    tails = np.tile(np.bincount(graph.triples[:, 2], minlength=graph.entity_count), copies)
    triples = np.empty((copies * len(graph), 3), np.int32)
    triples[:, 0] = np.repeat(np.arange(count, dtype=np.int32), heads)
    triples[:, 1] = rng.permutation(np.tile(graph.triples[:, 1], copies))
    triples[:, 2] = rng.permutation(np.repeat(np.arange(count, dtype=np.int32), tails))
    return KnowledgeGraph.build(triples, count, graph.relation_count)
