"""`read`: a file, a folder, a frame or a list of triples → `Dataset`, saying what was assumed and found."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgcf.data.dataset import Dataset, Split, transductive
from kgcf.data.encoding import EncodedTables, encode
from kgcf.data.findings import describe_mirrors, report_encoded
from kgcf.data.folders import Folder, find_parts, inductive_partner
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.names import read_dictionary, read_names
from kgcf.data.rdf import RDF_SUFFIXES, read_rdf
from kgcf.data.splitting import TEST, TRAIN, VALID, SplitSettings, split_triples
from kgcf.data.tables import TripleTable, from_arrow, read_parquet, read_text
from kgcf.errors import DataError

Triples = NDArray[np.int32]


def read_path(path: Path, split: SplitSettings | None = None, header: bool | None = None) -> Dataset:
    """Read a file (which is split by us) or a folder; NAME beside NAME_ind is read as an inductive pair."""
    if path.is_dir():
        folder = find_parts(path)
        partner = inductive_partner(path)
        if partner is not None:
            return read_inductive(path, partner, header)
        if folder.valid is None and folder.test is None and folder.facts is None:
            return split_table(read_table(folder.train, header), path.resolve().name, split)
        return read_folder(folder, header)
    return split_table(read_table(path, header), path.name.split(".")[0], split)


def read_table(path: Path, header: bool | None = None) -> TripleTable:
    """The triples of one file, whatever its format."""
    if path.is_dir():
        raise DataError(f"{path} is a folder where a file of triples is expected.")
    endings = [suffix.lower() for suffix in path.suffixes]
    kind = next((s for s in reversed(endings) if s != ".gz"), "")
    if kind in RDF_SUFFIXES:
        return read_rdf(path)
    if kind == ".parquet":
        return read_parquet(path)
    return read_text(path, header)


def read_frame(source: Any, name: str = "frame", split: SplitSettings | None = None) -> Dataset:  # noqa: ANN401
    """Split a pandas or polars frame, an Arrow table, an integer array [E, 3] or an iterable of tuples."""
    return split_table(table_from(source, name), name, split)


def table_from(source: Any, name: str) -> TripleTable:  # noqa: ANN401
    """The triples of an object in memory."""
    if hasattr(source, "__arrow_c_stream__") or isinstance(source, pa.Table):
        return from_arrow(pa.table(source), name)
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] == 3:
        return from_arrow(pa.table([pa.array(c) for c in source.T], names=["head", "relation", "tail"]), name)
    rows = list(_tuples(source, name))
    width = len(rows[0]) if rows else 3
    if width not in (3, 4) or any(len(row) != width for row in rows):
        wrong = next(i for i, row in enumerate(rows) if len(row) != width or width not in (3, 4))
        raise DataError(f"{name}, item {wrong}: expected (head, relation, tail) or (head, relation, tail, weight).")
    columns = [pa.array([str(row[i]) for row in rows], type=pa.string()) for i in range(3)]
    if width == 4:
        columns.append(pa.array([float(row[3]) for row in rows], type=pa.float32()))
    return from_arrow(pa.table(columns, names=["head", "relation", "tail", "weight"][:width]), name)


def read_folder(folder: Folder, header: bool | None = None) -> Dataset:
    """Read train, valid and test of one folder; `facts` joins train."""
    sources = [p for p in (folder.facts, folder.train, folder.valid, folder.test) if p is not None]
    tables = [read_table(p, header) for p in sources]
    encoded = _encode(tables, folder)
    by_source = dict(zip(sources, encoded.triples, strict=True))
    train = np.concatenate([by_source[p] for p in (folder.facts, folder.train) if p is not None])
    nothing = np.zeros((0, 3), dtype=np.int32)
    valid = by_source[folder.valid] if folder.valid else nothing
    test = by_source[folder.test] if folder.test else nothing
    weights = _joined_weights([t for p, t in zip(sources, tables, strict=True) if p in (folder.facts, folder.train)])
    notes = [note for table in tables for note in table.notes]
    notes += [f"no {part} file: that split is empty" for part, q in (("valid", valid), ("test", test)) if not len(q)]
    data = transductive(
        folder.path.resolve().name, encoded.entities, encoded.relations, (train, valid, test), weights, tuple(notes)
    )
    return data.with_notes(*report_encoded(data, train, (valid, test)))


def read_inductive(path: Path, new: Path, header: bool | None = None) -> Dataset:
    """GraIL pairs: train and validate on `path`; test on new entities, observing `new`/train.

    The ranking of the test split is filtered with all three splits of the new graph.
    """
    old = read_folder(find_parts(path), header)
    parts = find_parts(new)
    if parts.valid is None or parts.test is None:
        raise DataError(
            f"{new} lacks a valid or test file; an inductive pair needs train, valid and test in both folders."
        )
    tables = [read_table(p, header) for p in (parts.train, parts.valid, parts.test)]
    encoded = encode(tables, relations=old.relations.labels())
    if len(encoded.relations) > len(old.relations):
        extra = encoded.relations.label(len(old.relations))
        raise DataError(
            f"{new} uses the relation '{extra}', which {path} does not have; "
            "a trained model knows only its own relations."
        )
    count, kinds = len(encoded.entities), len(old.relations)
    observed = KnowledgeGraph.build(encoded.triples[0], count, kinds, tables[0].weights)
    known = KnowledgeGraph.build(np.concatenate(encoded.triples), count, kinds)
    test = Split("test", observed, encoded.triples[2], known, _named(encoded, parts).entities)
    note = f"inductive: trained and validated on {path.name}, tested on {new.name} with its train triples observed"
    return Dataset(old.name, old.relations, old.train, old.valid, test, (*old.notes, note))


def split_table(table: TripleTable, name: str, settings: SplitSettings | None = None) -> Dataset:
    """Number a single table and split it into train, valid and test."""
    chosen = settings or SplitSettings()
    encoded = encode([table])
    graph = KnowledgeGraph.build(encoded.triples[0], len(encoded.entities), len(encoded.relations), table.weights)
    result = split_triples(graph, chosen)
    parts = tuple(graph.triples[result.rows(part)] for part in (TRAIN, VALID, TEST))
    weights = None if graph.weights is None else graph.weights[result.rows(TRAIN)]
    notes = [*table.notes]
    repeated = len(table) - len(graph)
    if repeated:
        notes.append(f"{repeated:,} repeated triple{'s' if repeated > 1 else ''} left out")
    notes.append(f"split by kgcf with seed {chosen.seed}: " + " / ".join(f"{len(p):,}" for p in parts))
    notes += describe_mirrors(result.mirrors, encoded.relations, chosen.allow_inverse_leak)
    train, valid, test = parts
    return transductive(name, encoded.entities, encoded.relations, (train, valid, test), weights, tuple(notes))


def _encode(tables: list[TripleTable], folder: Folder) -> EncodedTables:
    entities = read_dictionary(folder.entities) if folder.entities else []
    relations = read_dictionary(folder.relations) if folder.relations else []
    encoded = encode(tables, entities, relations)
    beyond = len(encoded.entities) > len(entities) > 0 or len(encoded.relations) > len(relations) > 0
    if beyond:
        return _named(_by_number(tables, entities, relations, folder), folder)
    return _named(encoded, folder)


def _by_number(tables: list[TripleTable], entities: list[str], relations: list[str], folder: Folder) -> EncodedTables:
    """Triples written as the ids of `entities.dict` and `relations.dict`."""
    numbered = encode(tables, [str(i) for i in range(len(entities))], [str(i) for i in range(len(relations))])
    for vocabulary, labels, file in (
        (numbered.entities, entities, "entities.dict"),
        (numbered.relations, relations, "relations.dict"),
    ):
        if len(vocabulary) > len(labels) > 0:
            raise DataError(f"{folder.path}: '{vocabulary.label(len(labels))}' is used by a triple but not in {file}.")
    chosen = [
        labels or vocabulary.labels()
        for labels, vocabulary in ((entities, numbered.entities), (relations, numbered.relations))
    ]
    plain = encode([], chosen[0], chosen[1])
    return EncodedTables(plain.entities, plain.relations, numbered.triples)


def _named(encoded: EncodedTables, folder: Folder) -> EncodedTables:
    entities, relations = encoded.entities, encoded.relations
    if folder.entity_names:
        entities = entities.with_names(read_names(folder.entity_names))
    if folder.relation_names:
        relations = relations.with_names(read_names(folder.relation_names))
    return EncodedTables(entities, relations, encoded.triples)


def _joined_weights(tables: list[TripleTable]) -> NDArray[np.float32] | None:
    if all(table.weights is None for table in tables):
        return None
    parts = [np.ones(len(t), dtype=np.float32) if t.weights is None else t.weights for t in tables]
    return np.concatenate(parts)


def _tuples(source: Iterable[Any], name: str) -> Iterable[tuple[Any, ...]]:
    for i, row in enumerate(source):
        if isinstance(row, str) or not hasattr(row, "__len__"):
            raise DataError(f"{name}, item {i}: expected a tuple (head, relation, tail), found {row!r}.")
        yield tuple(row)
