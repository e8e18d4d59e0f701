"""M is the ψ-weighted sum of the relations' spaces, deterministic, zero where an entity has no edge."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from kgcf.causal.cache import Cache
from kgcf.causal.cached_stages import CausalStages
from kgcf.causal.embedding import (
    Engine,
    SpaceSettings,
    count_steps,
    embed_entities,
    gensim_trainer,
    open_space,
    relation_weights,
)
from kgcf.causal.embedding.entity_space import embed_relation
from kgcf.causal.relation_graphs import relation_graphs
from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import MissingExtraError, StorageError
from kgcf.storage import save_arrays

SMALL = SpaceSettings(dimension=8, walks=2, length=10, window=3, negatives=2)


def make_graph() -> KnowledgeGraph:
    rng = np.random.default_rng(4)
    triples = np.stack([rng.integers(0, 20, 90), rng.integers(0, 6, 90), rng.integers(0, 20, 90)], axis=1)
    return KnowledgeGraph.build(np.concatenate([triples, [[20, 6, 20], [21, 7, 22]]]), 25, 9)


@pytest.mark.parametrize("psi", ["frequency", "uniform", "inverse"])
def test_space_is_the_weighted_sum(psi: str) -> None:
    graph = make_graph()
    settings = SMALL.model_copy(update={"psi": psi})
    counts = np.bincount(graph.triples[:, 1], minlength=9)
    raw = {"frequency": counts, "uniform": counts > 0, "inverse": np.where(counts, 1 / np.maximum(counts, 1), 0)}[psi]
    weights = raw / raw.sum()
    np.testing.assert_allclose(relation_weights(graph, settings.psi), weights)
    expected = np.zeros((25, 8))
    for part in relation_graphs(graph):
        expected[part.entities] += weights[part.relation] * embed_relation(part, settings)
    space = embed_entities(graph, settings, threads=2)
    np.testing.assert_allclose(space.vectors, expected, atol=1e-6)
    absent = [20, 23, 24]  # a self-loop only, and two isolated entities
    assert not space.vectors[absent].any()
    assert space.vectors[[21, 22]].any(axis=1).all()  # a relation with one triple


@pytest.mark.parametrize("engine", ["compiled", "gensim"])
def test_threads_change_nothing_and_the_seed_everything(engine: Engine) -> None:
    graph, settings = make_graph(), SMALL.model_copy(update={"engine": engine, "epochs": 2})
    spaces = [embed_entities(graph, settings, threads=threads) for threads in (1, 2, 5)]
    assert len({space.fingerprint for space in spaces}) == 1
    other = embed_entities(graph, settings.model_copy(update={"seed": 1}), threads=1)
    assert other.fingerprint != spaces[0].fingerprint


SCRIPT = """
from tests.causal.embedding.test_space import SMALL, make_graph
from kgcf.causal.embedding import embed_entities
for engine in ("compiled", "gensim"):
    print(embed_entities(make_graph(), SMALL.model_copy(update={"engine": engine}), threads=2).fingerprint)
"""


@pytest.mark.slow
def test_nothing_depends_on_the_hash_seed_of_python() -> None:
    outputs = set()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1


def test_a_relation_does_not_feel_the_others() -> None:
    """Its stream is its own: adding triples of another relation leaves M_r alone, bit for bit."""
    graph = make_graph()
    more = KnowledgeGraph.build(np.concatenate([graph.triples, [[1, 8, 2], [2, 8, 3]]]), 25, 9)
    for one, other in zip(relation_graphs(graph), relation_graphs(more), strict=False):
        assert (embed_relation(one, SMALL) == embed_relation(other, SMALL)).all()


def test_both_engines_place_clusters_alike() -> None:
    """Two cliques joined by one edge: a member is nearer to its own clique, whichever engine."""
    edges = [(a, 0, b) for group in (range(8), range(8, 16)) for a in group for b in group if a < b]
    graph = KnowledgeGraph.build([*edges, (0, 0, 8)], 16, 1)
    for engine in ("compiled", "gensim"):
        vectors = embed_entities(graph, SpaceSettings(dimension=8, engine=engine), threads=1).vectors
        gaps = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
        within = (gaps[:8, :8].sum() + gaps[8:, 8:].sum()) / (2 * 8 * 7)
        assert within < 0.7 * gaps[:8, 8:].mean()


def test_progress_counts_every_step_once() -> None:
    seen: list[int] = []
    graph, settings = make_graph(), SMALL.model_copy(update={"epochs": 3})
    embed_entities(graph, settings, threads=2, advance=seen.append)
    assert sum(seen) == count_steps(graph, settings) == sum(map(len, relation_graphs(graph))) * 2 * 10 * 3


def test_empty_graph_gives_zeros() -> None:
    space = embed_entities(KnowledgeGraph.build(np.zeros((0, 3), int), 3, 2), SMALL)
    assert space.vectors.shape == (3, 8)
    assert not space.vectors.any()


def test_a_saved_space_comes_back(tmp_path: Path) -> None:
    space = embed_entities(make_graph(), SMALL, threads=1)
    space.save(tmp_path / "space.safetensors")
    again = open_space(tmp_path / "space.safetensors")
    assert (again.vectors == space.vectors).all()
    assert (again.settings, again.graph_fingerprint) == (space.settings, space.graph_fingerprint)
    save_arrays(tmp_path / "other.safetensors", {"x": np.zeros(2)})
    with pytest.raises(StorageError, match="does not hold an entity space"):
        open_space(tmp_path / "other.safetensors")


def test_without_gensim_its_engine_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(gensim_trainer, "version", missing)
    settings = SMALL.model_copy(update={"engine": "gensim"})
    for attempt in (embed_entities, CausalStages(Cache(None)).space):
        with pytest.raises(MissingExtraError, match=r"space\.engine=gensim .* pip install 'kgcf\[gensim\]'"):
            attempt(make_graph(), settings)


def test_impossible_settings_are_refused() -> None:
    for wrong in ({"dimension": 0}, {"p": 0}, {"length": 1}, {"psi": "loud"}, {"walk": 3}):
        with pytest.raises(ValidationError):
            SpaceSettings(**wrong)
