"""Graphs that a run was not trained on: read, and numbered so that the model knows their relations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Dataset, Split
from kgcf.data.encoding import encode
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.parsing import TripleTable
from kgcf.data.reader import read_table, table_from
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError


def read_graph(source: Any, trained: Dataset) -> tuple[KnowledgeGraph, Vocabulary]:  # noqa: ANN401
    """A file, frame, array or list of triples as a graph with its own entities and the relations of the trained data.

    Relations are found by label or by name; entities that training knew by a display name keep it.
    """
    path = Path(source) if isinstance(source, str | Path) else None
    if isinstance(source, TripleTable):
        table = source
    else:
        table = table_from(source, "graph") if path is None else read_table(path)
    encoded = encode([table])
    if not len(encoded.relations):
        raise DataError(f"{'the graph' if path is None else path} has no triples.")
    known = _known_relations(trained, encoded.relations)
    entities = encoded.entities.with_names(trained.entities.names)
    triples = _renumbered(encoded.triples[0], known)
    return KnowledgeGraph.build(triples, len(entities), len(trained.relations), table.weights), entities


def align_dataset(data: Dataset, trained: Dataset) -> Dataset:
    """Another dataset with its relations numbered as in the trained data."""
    known, count = _known_relations(trained, data.relations), len(trained.relations)

    made: dict[int, KnowledgeGraph] = {}  # by the graph that it is made of: splits that shared one still do

    def graph(old: KnowledgeGraph) -> KnowledgeGraph:
        if id(old) not in made:
            triples = _renumbered(old.triples, known)
            made[id(old)] = KnowledgeGraph.build(triples, old.entity_count, count, old.weights)
        return made[id(old)]

    def split(old: Split) -> Split:
        queries = _renumbered(old.queries, known)
        return replace(old, observed=graph(old.observed), queries=queries, known=graph(old.known))

    train, valid, test = map(split, data.splits)
    return replace(data, relations=trained.relations, train=train, valid=valid, test=test)


def _known_relations(trained: Dataset, relations: Vocabulary) -> NDArray[np.int32]:
    """[R'] the trained number of each relation of another graph."""
    return trained.relations.ids(relations.labels(), "relation").astype(np.int32)


def _renumbered(triples: NDArray[np.int32], known: NDArray[np.int32]) -> NDArray[np.int32]:
    result = triples.copy()
    result[:, 1] = known[triples[:, 1]]
    return result
