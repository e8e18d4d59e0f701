"""Labels → ids: several tables over one vocabulary of entities and one of relations."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgcf.data.parsing import TripleTable
from kgcf.data.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class EncodedTables:
    """Integer triples of every table, with the vocabularies they share."""

    entities: Vocabulary
    relations: Vocabulary
    triples: tuple[NDArray[np.int32], ...] = field(repr=False)  # [E_i, 3] each


def encode(tables: Sequence[TripleTable], entities: Sequence[str] = (), relations: Sequence[str] = ()) -> EncodedTables:
    """Number entities and relations in the order of first appearance, after the labels given."""
    sides = [column for table in tables for column in (table.heads, table.tails)]
    entity_labels, entity_ids = _number(sides, entities)
    relation_labels, relation_ids = _number([table.relations for table in tables], relations)
    triples = tuple(
        np.stack([entity_ids[2 * i], relation_ids[i], entity_ids[2 * i + 1]], axis=1) for i in range(len(tables))
    )
    entity_names = {label: name for table in tables for label, name in table.entity_names.items()}
    relation_names = {label: name for table in tables for label, name in table.relation_names.items()}
    return EncodedTables(Vocabulary(entity_labels, entity_names), Vocabulary(relation_labels, relation_names), triples)


def _number(columns: Sequence[pa.ChunkedArray], first: Sequence[str]) -> tuple[pa.StringArray, list[NDArray[np.int32]]]:
    """One dictionary for all columns; Arrow merges the chunks' own dictionaries."""
    given = pa.array(list(first), type=pa.string()).dictionary_encode()
    chunks = [given] + [chunk for column in columns for chunk in column.chunks]
    unified = pa.chunked_array(chunks).unify_dictionaries()
    ids: list[NDArray[np.int32]] = []
    position = 1
    for column in columns:
        parts = unified.chunks[position : position + column.num_chunks]
        position += column.num_chunks
        ids.append(np.concatenate([part.indices.to_numpy() for part in parts] or [np.zeros(0)]).astype(np.int32))
    return unified.chunk(0).dictionary, ids
