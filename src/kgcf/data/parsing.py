"""One file of triples → three columns of labels, and a weight column where there is one.

The fast way is Arrow's parallel CSV reader. When it meets something it cannot read, `locate_problem`
goes through the file line by line to say where.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kgcf.data.bad_lines import locate_problem
from kgcf.data.layout import EmptyError, Layout, detect_layout, match_columns
from kgcf.data.opening import open_binary
from kgcf.data.reading_options import AS_IT_STANDS, Reading
from kgcf.data.weights import check_weight, first_refused
from kgcf.errors import DataError

LABELS = pa.dictionary(pa.int32(), pa.string())
_SAMPLE_BYTES = 1 << 16


@dataclass(frozen=True, eq=False)
class TripleTable:
    """The triples of one source as dictionary-encoded labels; nothing is numbered or dropped yet."""

    heads: pa.ChunkedArray = field(repr=False)
    relations: pa.ChunkedArray = field(repr=False)
    tails: pa.ChunkedArray = field(repr=False)
    weights: NDArray[np.float32] | None = field(repr=False)
    notes: tuple[str, ...] = ()
    entity_names: dict[str, str] = field(default_factory=dict, repr=False)
    relation_names: dict[str, str] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.heads)


def read_text(path: Path, reading: Reading = AS_IT_STANDS) -> TripleTable:
    """Read TSV or CSV, plain or gzipped; `reading` overrides what would be detected."""
    where = str(path)
    layout = detect_layout(_sample(path, reading), where, reading)
    try:
        with open_binary(path) as stream:
            table = pacsv.read_csv(reading.without_comments(stream), *_csv_options(layout))
    except (pa.ArrowInvalid, EOFError, OSError, zlib.error) as error:
        locate_problem(open_binary, path, layout, reading)
        raise DataError(f"{where} could not be read: {error}") from error
    found = _checked(table, layout.weight is not None, path, lambda: locate_problem(open_binary, path, layout, reading))
    return replace(found, notes=(f"{path.name}: {layout.describe()}",))


def read_parquet(path: Path) -> TripleTable:
    """Read the head, relation and tail columns of a Parquet file, by name or as the first three."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not a readable Parquet file: {error}") from error
    return from_arrow(table, str(path))


def from_arrow(table: pa.Table, where: str) -> TripleTable:
    """Take the head, relation and tail columns of an Arrow table, by name or as the first three."""
    names = [str(name) for name in table.column_names]
    named = match_columns(names)
    if named is None and len(names) < 3:
        raise DataError(f"{where} has the columns {', '.join(names)}; it needs head, relation and tail.")
    columns, weight = named or ((0, 1, 2), 3 if len(names) == 4 and _is_numeric(table.column(3).type) else None)
    picked = [_as_labels(table.column(c)) for c in columns]
    weights = None if weight is None else _as_weights(table.column(weight), where)
    arrays = [*picked] + ([] if weights is None else [weights])
    result = pa.table(arrays, names=["head", "relation", "tail", "weight"][: len(arrays)])
    note = f"{where}: columns {', '.join(names[c] for c in columns)}"
    return replace(_checked(result, weights is not None, Path(where), _nowhere), notes=(note,))


def _csv_options(layout: Layout) -> tuple[pacsv.ReadOptions, pacsv.ParseOptions, pacsv.ConvertOptions]:
    names = [f"column {i}" for i in range(layout.column_count)]
    wanted = [names[c] for c in layout.columns]
    types: dict[str, pa.DataType] = dict.fromkeys(wanted, LABELS)
    if layout.weight is not None:
        wanted.append(names[layout.weight])
        types[names[layout.weight]] = pa.float32()
    return (
        pacsv.ReadOptions(column_names=names, skip_rows=int(layout.header), block_size=1 << 24),
        pacsv.ParseOptions(
            delimiter=layout.delimiter,
            quote_char='"' if layout.quoted else False,
            newlines_in_values=layout.quoted,
        ),
        pacsv.ConvertOptions(column_types=types, include_columns=wanted, strings_can_be_null=False),
    )


def _checked(table: pa.Table, weighted: bool, path: Path, locate: Callable[[], None]) -> TripleTable:
    """Refuse empty labels and impossible weights; `locate` names the line where the file is text."""
    columns = [table.column(i) for i in range(3)]
    weights = table.column(3) if weighted else None
    if any(_has_blank(column) for column in columns) or (weights is not None and weights.null_count):
        locate()
        what = "a missing weight" if weights is not None and weights.null_count else "an empty label"
        raise DataError(f"{path} has {what} in at least one row; fill it in or remove the row.")
    if not len(table):
        raise EmptyError(path)
    values = None if weights is None else weights.to_numpy().astype(np.float32)
    if values is not None and (row := first_refused(values)) is not None:
        locate()
        check_weight(float(values[row]), f"{path}, row {row + 1}")
    return TripleTable(columns[0], columns[1], columns[2], values)


def _nowhere() -> None:
    """A table in memory or in Parquet has no lines to look at."""


def _as_weights(column: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Numbers, or texts that are numbers, as float32; what cannot be one is refused with its row."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return column.cast(pa.float32(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        for row, value in enumerate(column.to_pylist(), start=1):
            check_weight(value, f"{where}, row {row}")
        raise DataError(f"{where}: its weights of type {column.type} cannot be read: {error}.") from error


def _has_blank(column: pa.ChunkedArray) -> bool:
    if column.null_count:
        return True
    trimmed = (pc.utf8_trim_whitespace(chunk.dictionary) for chunk in column.chunks)
    return any(pc.any(pc.equal(values, "")).as_py() for values in trimmed)


def _as_labels(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings, integers or categories as dictionary-encoded strings."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        column = column.cast(pa.string())
    return column.cast(pa.string()).dictionary_encode().cast(LABELS)


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _sample(path: Path, reading: Reading) -> str:
    """The start of a file, as far as there is a line that is no comment."""
    with open_binary(path) as stream, _reported(path):
        sample = stream.read(_SAMPLE_BYTES)
        if sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"{path} is encoded as UTF-16. Save it as UTF-8.")
        while reading.comment is not None and (more := stream.read(_SAMPLE_BYTES)):
            with reading.without_comments(io.BytesIO(sample)) as kept:
                if kept.read(1):
                    break
            sample += more
    return sample.decode("utf-8-sig", errors="replace")


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Turn the ways a damaged gzip file fails into one sentence."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is damaged or cut short: its gzip data is not complete. Fetch it again.") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder, not a file.") from error
