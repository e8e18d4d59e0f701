"""The data of a run in its folder: names, graphs, splits, and all truths where they do not follow from these."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Dataset, Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.runs.vocabulary_file import read_vocabulary, vocabulary_lines
from kgcf.storage import map_arrays, save_arrays, write_text

_ENTITIES, _RELATIONS, _GRAPH = "entities.txt", "relations.txt", "graph.safetensors"
_NEW_ENTITIES, _NEW_GRAPH = "new_entities.txt", "new_graph.safetensors"  # of an inductive test
_SPLITS = "splits.safetensors"
DATA_FILES = (_ENTITIES, _RELATIONS, _GRAPH, _NEW_ENTITIES, _NEW_GRAPH, _SPLITS)


def write_data(folder: Path, data: Dataset) -> None:
    """Write the names, the graphs and the splits."""
    write_text(folder / _ENTITIES, vocabulary_lines(data.entities))
    write_text(folder / _RELATIONS, vocabulary_lines(data.relations))
    data.graph.save(folder / _GRAPH)
    arrays: dict[str, NDArray[np.generic]] = {"valid": data.valid.queries, "test": data.test.queries}
    if data.inductive:
        write_text(folder / _NEW_ENTITIES, vocabulary_lines(data.test.entities))
        data.test.observed.save(folder / _NEW_GRAPH)
        arrays |= _truths("new_known", data.test.known)
    elif data.test.known.weights is not None:
        arrays |= _truths("known", data.test.known)
    save_arrays(folder / _SPLITS, arrays)


def data_facts(data: Dataset) -> dict[str, object]:
    """What else `read_data` needs to know."""
    return {
        "dataset": data.name,
        "benchmark": data.benchmark,
        "notes": list(data.notes),
        "inductive": data.inductive,
        "validated_elsewhere": data.validated_elsewhere,
    }


def read_data(folder: Path, facts: Mapping[str, Any]) -> Dataset:
    """What `write_data` wrote, with the facts that belong to it; graphs are mapped, not loaded."""
    entities, relations = read_vocabulary(folder / _ENTITIES), read_vocabulary(folder / _RELATIONS)
    graph = KnowledgeGraph.open(folder / _GRAPH)
    arrays = map_arrays(folder / _SPLITS)
    valid, test = (np.asarray(arrays[part], dtype=np.int32) for part in ("valid", "test"))
    validated = Split("valid", graph, valid, _before_test(graph, valid), entities)
    if facts["inductive"]:
        new, observed = read_vocabulary(folder / _NEW_ENTITIES), KnowledgeGraph.open(folder / _NEW_GRAPH)
        task = Split("test", observed, test, _known("new_known", arrays, observed), new)
        if facts.get("validated_elsewhere"):
            validated = Split("valid", observed, valid, _before_test(observed, valid), new)
    else:
        arrays.setdefault("known", np.concatenate([graph.triples, valid, test]))
        task = Split("test", graph, test, _known("known", arrays, graph), entities)
    benchmark = facts.get("benchmark")  # not in runs written before it was known by checksum
    return Dataset(
        str(facts["dataset"]),
        relations,
        Split("train", graph, graph.triples, graph, entities),
        validated,
        task,
        tuple(facts["notes"]),
        None if benchmark is None else str(benchmark),
    )


def _before_test(graph: KnowledgeGraph, valid: NDArray[np.int32]) -> KnowledgeGraph:
    """What filters validation: the observed triples and its own."""
    return KnowledgeGraph.build(np.concatenate([graph.triples, valid]), graph.entity_count, graph.relation_count)


def _truths(name: str, known: KnowledgeGraph) -> dict[str, NDArray[np.generic]]:
    """All truths as arrays to save, with their weights where they have some."""
    weights = {} if known.weights is None else {f"{name}_weights": known.weights}
    return {name: known.triples, **weights}


def _known(name: str, arrays: Mapping[str, NDArray[np.generic]], observed: KnowledgeGraph) -> KnowledgeGraph:
    """The graph of all truths as it was saved.

    Runs from before the weights of valid and test were kept have those of the observed triples only; the others
    weigh 1 there, as they did then.
    """
    triples = np.asarray(arrays[name], dtype=np.int32)
    weights = arrays.get(f"{name}_weights")
    if weights is None and observed.weights is not None:
        edges = observed.find_edges(*triples.T)
        weights = np.ones(len(triples), dtype=np.float32)
        weights[edges >= 0] = observed.edge_weights[edges[edges >= 0]]
    return KnowledgeGraph.build(triples, observed.entity_count, observed.relation_count, weights)
