"""Labels as they stand in a source: spaces around them are said or stripped, and what looks like a comment is said."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from kgcf.data.layout import MARK
from kgcf.data.parsing import LABELS, TripleTable


def tidy(table: TripleTable, where: str, strip: bool) -> TripleTable:
    """The table with a note about labels with spaces around them, which are stripped if asked for."""
    spaced = sorted({label for column in _columns(table) for label in _spaced(column)})
    notes = [*table.notes]
    if spaced and strip:
        notes.append(f"{where}: spaces around {_counted(spaced)} stripped")
        heads, relations, tails = (_stripped(column) for column in _columns(table))
        table = replace(table, heads=heads, relations=relations, tails=tails)
    elif spaced:
        notes.append(
            f"{where}: spaces around {_counted(spaced)} kept as part of the label; "
            "--strip (in Python: strip=True) removes them"
        )
    marked = sorted(set(_marked(table.heads)))
    if marked:
        notes.append(
            f"{where}: {_counted(marked)} read as heads of triples; "
            f"if these lines are comments, skip them with --comment '{MARK}' (in Python: comment='{MARK}')"
        )
    return replace(table, notes=tuple(notes))


def _columns(table: TripleTable) -> tuple[pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray]:
    return table.heads, table.relations, table.tails


def _spaced(column: pa.ChunkedArray) -> Iterator[str]:
    """The distinct labels that begin or end with white space."""
    for chunk in column.chunks:
        values = chunk.dictionary
        yield from values.filter(pc.not_equal(values, pc.utf8_trim_whitespace(values))).to_pylist()


def _marked(column: pa.ChunkedArray) -> Iterator[str]:
    """The distinct labels that begin with the usual mark of a comment."""
    for chunk in column.chunks:
        values = chunk.dictionary
        yield from values.filter(pc.starts_with(values, MARK)).to_pylist()


def _stripped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without white space around its labels; labels that become the same are one."""
    return pc.utf8_trim_whitespace(column.cast(pa.string())).dictionary_encode().cast(LABELS)


def _counted(labels: list[str]) -> str:
    more = len(labels) - 1
    return f"'{labels[0]}'" + (f" and {more:,} more label{'s' if more > 1 else ''}" if more else "")
