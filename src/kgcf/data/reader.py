"""`read`: a file, a folder, a frame or a list of triples → `Dataset`, saying what was assumed and found."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgcf.data.dataset import Dataset, Split, transductive
from kgcf.data.encoding import EncodedTables, encode
from kgcf.data.folders import Folder, find_parts, inductive_partner
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.label_notes import tidy
from kgcf.data.layout import EmptyError
from kgcf.data.names import read_dictionary, read_names
from kgcf.data.notes import describe_mirrors, report_encoded, report_relations
from kgcf.data.parsing import TripleTable, from_arrow, read_parquet, read_text
from kgcf.data.rdf import RDF_SUFFIXES, read_rdf
from kgcf.data.reading_options import AS_IT_STANDS, Reading
from kgcf.data.splitting import TEST, TRAIN, VALID, SplitSettings, split_triples
from kgcf.data.weights import Weights, check_weight, join_weights
from kgcf.errors import DataError

Triples = NDArray[np.int32]
_NOTHING = ("None", "nan", "NaT", "<NA>")  # how missing values read
_EMPTY = "no {} triples: that split is empty"


def read_path(path: Path, split: SplitSettings | None = None, reading: Reading = AS_IT_STANDS) -> Dataset:
    """Read a file (which is split by us) or a folder; NAME beside NAME_ind is read as an inductive pair."""
    if path.is_dir():
        partner = inductive_partner(path)
        if partner is not None:
            return read_inductive(path, partner, reading)
        return read_folder(find_parts(path), split, reading)
    return split_table(read_table(path, reading), path.name.split(".")[0], split)


def read_table(path: Path, reading: Reading = AS_IT_STANDS) -> TripleTable:
    """The triples of one file, whatever its format."""
    if path.is_dir():
        raise DataError(f"{path} is a folder where a file of triples is expected.")
    endings = [suffix.lower() for suffix in path.suffixes]
    kind = next((s for s in reversed(endings) if s != ".gz"), "")
    if kind in RDF_SUFFIXES:
        return read_rdf(path)
    found = read_parquet(path) if kind == ".parquet" else read_text(path, reading)
    return tidy(found, path.name, reading.strip)


def read_frame(
    source: Any,  # noqa: ANN401
    name: str = "frame",
    split: SplitSettings | None = None,
    reading: Reading = AS_IT_STANDS,
) -> Dataset:
    """Split a pandas or polars frame, an Arrow table, an integer array [E, 3] or an iterable of tuples."""
    return split_table(tidy(table_from(source, name), name, reading.strip), name, split)


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
    for i, row in enumerate(rows):
        if any(_is_missing(value) for value in row[:3]):
            raise DataError(f"{name}, item {i}: {row!r} has an empty label; fill it in or leave the triple out.")
    columns = [pa.array([str(row[i]) for row in rows], type=pa.string()) for i in range(3)]
    if width == 4:
        for i, row in enumerate(rows):
            check_weight(row[3], f"{name}, item {i}")
        columns.append(pa.array([float(row[3]) for row in rows], type=pa.float32()))
    return from_arrow(pa.table(columns, names=["head", "relation", "tail", "weight"][:width]), name)


def read_folder(folder: Folder, split: SplitSettings | None = None, reading: Reading = AS_IT_STANDS) -> Dataset:
    """Read train, valid and test of one folder; `facts` joins train. Train alone is split by us."""
    tables, notes = _read_tables(folder, reading)
    if list(tables) == ["train"]:
        alone = split_table(tables["train"], folder.path.resolve().name, split)
        return replace(alone, notes=(*notes, *alone.notes))
    data = _as_dataset(folder, tables, notes)
    return data.with_notes(*report_relations(data))


def read_splits(parts: Mapping[str, Any], reading: Reading = AS_IT_STANDS) -> Dataset:
    """Train, valid and test as the user has split them, each a file or an object in memory; train must be there."""
    tables: dict[str, TripleTable] = {}
    for part, source in parts.items():
        try:
            tables[part] = _one_table(source, part, reading)
        except EmptyError:
            if part == "train":
                raise
    train = parts["train"]
    name = Path(train).name.split(".")[0] if isinstance(train, str | Path) else "frame"
    data = _as_dataset(Folder.of_nothing_but(Path(name)), tables, [])
    return data.with_notes(*report_relations(data))


def _one_table(source: Any, part: str, reading: Reading) -> TripleTable:  # noqa: ANN401
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise DataError(f"{part}={str(source)!r} is no file.")
        return read_table(path, reading)
    return tidy(table_from(source, part), part, reading.strip)


def _read_tables(folder: Folder, reading: Reading) -> tuple[dict[str, TripleTable], list[str]]:
    """The tables of a folder by part, and notes; a file without triples, but for train, is as good as none."""
    tables: dict[str, TripleTable] = {}
    notes: list[str] = []
    for part, path in (("facts", folder.facts), *folder.splits):
        if path is None:
            continue
        try:
            tables[part] = read_table(path, reading)
        except EmptyError:
            if part == "train":
                raise
            notes.append(f"{path.name} has no triples: taken as if it were not there")
    return tables, notes


def _as_dataset(folder: Folder, tables: dict[str, TripleTable], notes: list[str]) -> Dataset:
    """One dataset of a folder's tables, with what was found in it."""
    encoded = _encode(list(tables.values()), folder)
    rows = dict(zip(tables, encoded.triples, strict=True))
    nothing = np.zeros((0, 3), dtype=np.int32)
    train = np.concatenate([rows[part] for part in ("facts", "train") if part in rows])
    valid, test = rows.get("valid", nothing), rows.get("test", nothing)
    weights = [_weights_of(tables, *parts) for parts in (("facts", "train"), ("valid",), ("test",))]
    all_notes = [*notes, *(note for table in tables.values() for note in table.notes)]
    all_notes += [_EMPTY.format(part) for part in ("valid", "test") if part not in tables]
    data = transductive(
        folder.path.resolve().name,
        encoded.entities,
        encoded.relations,
        (train, valid, test),
        (weights[0], weights[1], weights[2]),
        tuple(all_notes),
    )
    return data.with_notes(*report_encoded(data, train, (valid, test)))


def read_inductive(path: Path, new: Path, reading: Reading = AS_IT_STANDS) -> Dataset:
    """GraIL pairs: train and validate on `path`; test on new entities, observing `new`/train.

    The ranking of the test split is filtered with all three splits of the new graph. Where `path` has no validation
    triples, validation asks about the new graph too (ILPC's layout), and is filtered with its train and valid.
    """
    old_parts, parts = find_parts(path), replace(find_parts(new), facts=None)
    old = _as_dataset(old_parts, *_read_tables(old_parts, reading))
    tables, notes = _read_tables(parts, reading)
    if list(tables) != ["train", "valid", "test"]:
        raise DataError(
            f"{new} lacks a valid or test file with triples; an inductive pair needs train, valid and test in both "
            "folders."
        )
    encoded = encode(list(tables.values()), relations=old.relations.labels())
    if len(encoded.relations) > len(old.relations):
        extra = encoded.relations.label(len(old.relations))
        raise DataError(
            f"{new} uses the relation '{extra}', which {path} does not have; "
            "a trained model knows only its own relations."
        )
    count, kinds = len(encoded.entities), len(old.relations)
    observed = KnowledgeGraph.build(encoded.triples[0], count, kinds, tables["train"].weights)
    known = KnowledgeGraph.build(np.concatenate(encoded.triples), count, kinds, _weights_of(tables, *tables))
    entities = _named(encoded, parts).entities
    test = Split("test", observed, encoded.triples[2], known, entities)
    valid, found = old.valid, tuple(note for note in old.notes if note != _EMPTY.format("test"))
    note = f"inductive: trained and validated on {path.name}, tested on {new.name} with its train triples observed"
    if not len(valid):
        before_test = KnowledgeGraph.build(np.concatenate(encoded.triples[:2]), count, kinds)
        valid = Split("valid", observed, encoded.triples[1], before_test, entities)
        found = tuple(note for note in found if note != _EMPTY.format("valid"))
        note = (
            f"inductive: trained on {path.name}, which has no validation triples; validated and tested on {new.name} "
            "with its train triples observed"
        )
    data = Dataset(old.name, old.relations, old.train, valid, test, (*found, *notes, note))
    return data.with_notes(*report_relations(data))


def split_table(table: TripleTable, name: str, settings: SplitSettings | None = None) -> Dataset:
    """Number a single table and split it into train, valid and test."""
    chosen = settings or SplitSettings()
    encoded = encode([table])
    graph = KnowledgeGraph.build(encoded.triples[0], len(encoded.entities), len(encoded.relations), table.weights)
    result = split_triples(graph, chosen)
    parts = tuple(graph.triples[result.rows(part)] for part in (TRAIN, VALID, TEST))
    weights = [None if graph.weights is None else graph.weights[result.rows(part)] for part in (TRAIN, VALID, TEST)]
    notes = [*table.notes]
    repeated = len(table) - len(graph)
    if repeated:
        notes.append(f"{repeated:,} repeated triple{'s' if repeated > 1 else ''} left out")
    notes.append(f"split by kgcf with seed {chosen.seed}: " + " / ".join(f"{len(p):,}" for p in parts))
    notes += describe_mirrors(result.mirrors, encoded.relations, chosen.allow_inverse_leak)
    data = transductive(
        name,
        encoded.entities,
        encoded.relations,
        (parts[0], parts[1], parts[2]),
        (weights[0], weights[1], weights[2]),
        tuple(notes),
    )
    return data.with_notes(*report_relations(data))


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


def _weights_of(tables: dict[str, TripleTable], *parts: str) -> Weights | None:
    """The weights of some parts of a folder, in that order."""
    found = [tables[part] for part in parts if part in tables]
    return join_weights([table.weights for table in found], [len(table) for table in found])


def _is_missing(value: object) -> bool:
    """Whether a cell is what Python and pandas put where nothing is: as text, all of them would be one entity."""
    return value == "" if isinstance(value, str) else str(value) in _NOTHING


def _tuples(source: Any, name: str) -> Iterable[tuple[Any, ...]]:  # noqa: ANN401
    if not isinstance(source, Iterable):
        kind = type(source).__name__
        raise DataError(
            f"{name}: expected a frame, an array [E, 3] or a list of triples, found a value of type {kind}."
        )
    for i, row in enumerate(source):
        if isinstance(row, str) or not hasattr(row, "__len__"):
            raise DataError(f"{name}, item {i}: expected a tuple (head, relation, tail), found {row!r}.")
        yield tuple(row)
