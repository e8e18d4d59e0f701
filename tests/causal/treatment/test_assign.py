"""Settings, awkward graphs, symmetry, saving and opening."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from pydantic import ValidationError

from kgcf.causal.treatment import TREATMENTS, TreatmentSettings, assign_treatment, open_treatment
from kgcf.causal.treatment.settings import MethodName
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import hide_triples
from kgcf.errors import StorageError
from kgcf.storage import map_arrays, read_header, save_arrays
from tests.causal.treatment.oracles import EXACT, clustered_graph, naive_treated

METHODS = [*EXACT, TreatmentSettings(method="louvain")]
every_method = pytest.mark.parametrize("settings", METHODS, ids=lambda s: f"{s.method}-{s.k}")


def test_every_name_has_a_class() -> None:
    assert set(TREATMENTS) == set(get_args(MethodName))
    assert TreatmentSettings().method == "core_number"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": "core"}, "core_number"),
        ({"depth": 3}, "depth"),
        ({"k": 3}, "'k' belongs to the treatment 'core_component', but the method is 'core_number'"),
        ({"method": "louvain", "k": 3}, "'k' belongs to"),
        ({"seed": 1}, "'seed' belongs to the treatment 'louvain'"),
        ({"method": "core_component", "k": 0}, "greater than or equal to 1"),
        ({"method": "louvain", "resolution": 0}, "greater than 0"),
        ({"method": "file"}, "needs 'path'"),
    ],
)
def test_settings_that_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TreatmentSettings.model_validate(values)


def test_settings_survive_json() -> None:
    for settings in METHODS:
        assert TreatmentSettings.model_validate_json(settings.model_dump_json()) == settings


@every_method
@pytest.mark.parametrize(
    ("triples", "entities", "relations"),
    [
        ([], 1, 1),
        ([], 3, 2),
        ([(0, 0, 0)], 1, 1),
        ([(0, 0, 1)], 2, 1),
        ([(0, 0, 1), (1, 0, 0), (2, 0, 2)], 4, 1),
        ([(0, 1, 1), (1, 1, 2), (2, 1, 0), (3, 0, 3)], 5, 3),
    ],
    ids=["no triple", "no triples", "self-loop", "one triple", "both directions", "empty relations"],
)
def test_awkward_graphs(
    settings: TreatmentSettings, triples: list[tuple[int, int, int]], entities: int, relations: int
) -> None:
    graph = KnowledgeGraph.build(triples, entities, relations)
    treatment = assign_treatment(graph, settings, threads=2)
    assert treatment.treated([], [], np.zeros((0, 3))).shape == (0, 3)
    assert treatment.treated_triples(np.zeros((0, 3), int), leave_one_out=True).shape == (0,)
    loo = treatment.treated_triples(graph.triples, leave_one_out=True)
    assert loo.shape == (len(graph),)
    for head in range(entities):
        for relation in range(2 * relations):
            found = treatment.treated([head], [relation])[0].tolist()
            if settings.method != "louvain":
                assert found == naive_treated(graph, settings, head, relation)
            linked = {e for h, r, t in triples if r == relation % relations and h != t for e in (h, t)}
            if settings.method != "collapsed_core":
                assert not any(found[e] for e in range(entities) if e not in linked or head not in linked)


def test_k_above_every_core_treats_nobody() -> None:
    graph = clustered_graph(np.random.default_rng(0))
    treatment = assign_treatment(graph, TreatmentSettings(method="core_component", k=1000))
    assert len(treatment.labels.labels) == 0
    assert not treatment.treated_triples(graph.triples).any()
    assert not treatment.treated_triples(graph.triples, leave_one_out=True).any()


@every_method
def test_inverse_relations_swap_the_ends(settings: TreatmentSettings) -> None:
    graph = clustered_graph(np.random.default_rng(1))
    treatment = assign_treatment(graph, settings)
    heads, relations, tails = graph.triples.T
    swapped = np.stack([tails, graph.inverse(relations), heads], axis=1)
    for loo in (False, True):
        np.testing.assert_array_equal(
            treatment.treated_triples(graph.triples, loo), treatment.treated_triples(swapped, loo)
        )
    whole = np.array([treatment.treated(np.arange(44), np.full(44, r)) for r in range(4)])
    np.testing.assert_array_equal(whole, whole.transpose(0, 2, 1))
    np.testing.assert_array_equal(whole[:2], whole[2:])
    assert whole[0].any()
    assert not whole[:, -2:].any()


@pytest.mark.parametrize("settings", EXACT, ids=lambda s: f"{s.method}-{s.k}")
def test_relabelling_entities_permutes_the_treatment(settings: TreatmentSettings) -> None:
    generator = np.random.default_rng(6)
    graph = clustered_graph(generator)
    names = generator.permutation(graph.entity_count)
    triples = graph.triples.copy()
    triples[:, [0, 2]] = names[triples[:, [0, 2]]]
    other = KnowledgeGraph.build(triples, graph.entity_count, 2)
    left, right = assign_treatment(graph, settings), assign_treatment(other, settings)
    for loo in (False, True):
        np.testing.assert_array_equal(left.treated_triples(graph.triples, loo), right.treated_triples(triples, loo))


@every_method
def test_threads_do_not_change_the_result(settings: TreatmentSettings, tmp_path: Path) -> None:
    graph = clustered_graph(np.random.default_rng(7))
    for threads in (1, 3):
        assign_treatment(graph, settings, threads=threads).save(tmp_path / f"{threads}.safetensors")
    assert (tmp_path / "1.safetensors").read_bytes() == (tmp_path / "3.safetensors").read_bytes()


@every_method
def test_saved_and_opened(settings: TreatmentSettings, tmp_path: Path) -> None:
    graph = clustered_graph(np.random.default_rng(7))
    path = tmp_path / "treatment.safetensors"
    treatment = assign_treatment(graph, settings)
    treatment.save(path)
    opened = open_treatment(path, graph)
    assert type(opened) is type(treatment)
    assert opened.settings == settings
    assert opened.fingerprint == treatment.fingerprint
    heads, relations, _ = graph.triples.T
    two = hide_triples(graph, *graph.triples.T)
    for hidden in (None, two):
        np.testing.assert_array_equal(
            opened.treated(heads, relations, None, hidden), treatment.treated(heads, relations, None, hidden)
        )
    without_changes = assign_treatment(graph, settings.model_copy(update={"leave_one_out": False}))
    without_changes.save(path)
    assert open_treatment(path, graph).stored is None
    np.testing.assert_array_equal(
        open_treatment(path, graph).treated(heads, relations, None, two),
        treatment.treated(heads, relations, None, two),
    )


def test_fingerprints_tell_everything_apart() -> None:
    graph = clustered_graph(np.random.default_rng(7))
    smaller = graph.without(graph.triples[:1])
    prints = [assign_treatment(g, s).fingerprint for s in METHODS for g in (graph, smaller)]
    prints.append(assign_treatment(graph, TreatmentSettings(leave_one_out=False)).fingerprint)
    prints.append(assign_treatment(graph, TreatmentSettings(method="louvain", seed=1)).fingerprint)
    assert len(set(prints)) == len(prints)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    graph = clustered_graph(np.random.default_rng(7))
    path = tmp_path / "treatment.safetensors"
    assign_treatment(graph).save(path)
    with pytest.raises(StorageError, match="another graph"):
        open_treatment(path, graph.without(graph.triples[:1]))
    arrays, metadata = map_arrays(path), read_header(path)[1]
    save_arrays(path, {k: v for k, v in arrays.items() if k != "labels"}, metadata)
    with pytest.raises(StorageError, match="damaged"):
        open_treatment(path, graph)
    save_arrays(path, arrays, {name: text.replace("core_number", "core") for name, text in metadata.items()})
    with pytest.raises(StorageError, match="damaged"):
        open_treatment(path, graph)
    save_arrays(path, arrays, {"kgcf treatment 0": "{}"})
    with pytest.raises(StorageError, match=re.escape(str(path))):
        open_treatment(path, graph)
    assign_treatment(graph).save(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(StorageError, match="truncated"):
        open_treatment(path, graph)
    with pytest.raises(StorageError, match="No such file"):
        open_treatment(tmp_path / "absent.safetensors", graph)
