"""M = Σ_r ψ_r M_r: one vector per entity, the same for a seed whatever the number of threads."""

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.embedding.settings import Psi, SpaceSettings
from kgcf.causal.embedding.skipgram import train_vectors
from kgcf.causal.embedding.walks import walk_round
from kgcf.causal.relation_graphs import RelationGraph, SimpleGraphs, relation_graphs
from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import StorageError
from kgcf.progress import Advance, silent
from kgcf.storage import map_arrays, read_header, save_arrays


@dataclass(frozen=True, eq=False)
class EntitySpace:
    """The vectors in which the nearest pair is sought; an entity without any edge to another one is zero."""

    vectors: NDArray[np.float32] = field(repr=False)  # [N, D]
    settings: SpaceSettings
    graph_fingerprint: str

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the vectors; caches are keyed by it."""
        digest = hashlib.sha256(repr(self.vectors.shape).encode())
        digest.update(np.ascontiguousarray(self.vectors).tobytes())
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        """Write the space as one `.safetensors` file, atomically."""
        metadata = {"settings": self.settings.model_dump_json(), "graph": self.graph_fingerprint}
        save_arrays(path, {"vectors": self.vectors}, metadata)


def open_space(path: Path) -> EntitySpace:
    """Map a saved space into memory."""
    metadata = read_header(path)[1]
    vectors = map_arrays(path).get("vectors")
    if vectors is None or "settings" not in metadata:
        raise StorageError(f"{path} does not hold an entity space; train again or remove it.")
    settings = SpaceSettings.model_validate_json(metadata["settings"])
    return EntitySpace(vectors.astype(np.float32, copy=False), settings, metadata.get("graph", ""))


def relation_weights(graph: KnowledgeGraph, psi: Psi) -> NDArray[np.float64]:
    """[R] ψ_r, summing to 1 over the relations that have a triple; the others weigh nothing."""
    counts = np.bincount(graph.triples[:, 1], minlength=graph.relation_count).astype(np.float64)
    present = counts > 0
    raw = np.zeros_like(counts)
    raw[present] = {"frequency": counts, "uniform": np.ones_like(counts), "inverse": 1 / np.maximum(counts, 1)}[psi][
        present
    ]
    return raw / raw.sum() if present.any() else raw


def count_steps(graph: KnowledgeGraph, settings: SpaceSettings) -> int:
    """How many steps of walks `embed_entities` will train on: the total of its progress."""
    return len(SimpleGraphs.build(graph).entities) * settings.walks * settings.length * settings.epochs


def embed_entities(
    graph: KnowledgeGraph,
    settings: SpaceSettings | None = None,
    threads: int | None = None,
    advance: Advance = silent,
) -> EntitySpace:
    """Walk and train relation by relation, several at a time, and sum.

    Every relation has its own stream of random numbers, drawn from (seed, relation), and the sum is taken in a
    fixed order (largest relation first), so the number of threads changes nothing. `advance` hears of every step.
    """
    settings = settings or SpaceSettings()
    weights = relation_weights(graph, settings.psi)
    relations = sorted(relation_graphs(graph), key=lambda part: (-len(part), part.relation))
    total = np.zeros((graph.entity_count, settings.dimension), np.float64)
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        for part, vectors in zip(
            relations, pool.map(lambda part: embed_relation(part, settings, advance), relations), strict=True
        ):
            total[part.entities] += weights[part.relation] * vectors
    return EntitySpace(total.astype(np.float32), settings, graph.fingerprint)


def embed_relation(part: RelationGraph, settings: SpaceSettings, advance: Advance = silent) -> NDArray[np.float32]:
    """[n, D] M_r: the vectors of the entities of one A_r, in its local order."""
    walk_seed, train_seed = np.random.SeedSequence([settings.seed, part.relation]).spawn(2)

    def rounds(training: bool = True) -> Iterator[NDArray[np.int32]]:
        generator = np.random.default_rng(walk_seed)
        for _ in range(settings.walks):
            yield walk_round(part, settings.length, settings.p, settings.q, generator)
            if training:
                advance(len(part) * settings.length)

    counts = np.zeros(len(part), np.int64)
    for block in rounds(training=False):
        counts += np.bincount(block.ravel(), minlength=len(part))
    generator = np.random.default_rng(train_seed)
    if settings.engine == "gensim":
        from kgcf.causal.embedding.gensim_trainer import train_with_gensim

        return train_with_gensim(rounds, counts, settings, generator)
    walk_count = len(part) * settings.walks * settings.epochs
    rates = np.linspace(settings.rate, settings.final_rate, walk_count, dtype=np.float32)
    return train_vectors(rounds, counts, settings.dimension, settings.window, settings.negatives, rates, generator)
