"""Say where a file of triples goes wrong: a slow, line-by-line reading, done only after the fast one failed."""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from kgcf.data.layout import Layout, comment_hint
from kgcf.data.reading_options import AS_IT_STANDS, Reading
from kgcf.data.weights import check_weight
from kgcf.errors import DataError

Opener = Callable[[Path], AbstractContextManager[BinaryIO]]


def locate_problem(opener: Opener, path: Path, layout: Layout, reading: Reading = AS_IT_STANDS) -> None:
    """Raise `DataError` with file and line for the first thing that is wrong; return if all lines are well."""
    try:
        with opener(path) as stream:
            for count, (number, cells) in enumerate(_rows(_decoded(stream, path), layout, reading)):
                if count or not layout.header:
                    _check_row(cells, layout, f"{path}, line {number}")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is damaged or cut short: its gzip data is not complete. Fetch it again.") from error


def _decoded(stream: BinaryIO, path: Path) -> Iterator[str]:
    for number, raw in enumerate(stream, start=1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            byte = raw[error.start]
            raise DataError(
                f"{path}, line {number}: byte 0x{byte:02x} is not valid UTF-8. Save the file in UTF-8 encoding."
            ) from error


def _rows(lines: Iterator[str], layout: Layout, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line that is neither blank nor a comment."""
    if layout.quoted:
        kept = ("\n" if reading.is_comment(line) else line for line in lines)
        reader = csv.reader(kept, delimiter=layout.delimiter)
        before = 0
        for cells in reader:
            if cells:
                yield before + 1, cells
            before = reader.line_num
        return
    for number, line in enumerate(lines, start=1):
        stripped = line.rstrip("\r\n")
        if stripped and not reading.is_comment(line):
            yield number, stripped.split(layout.delimiter)


def _check_row(cells: list[str], layout: Layout, where: str) -> None:
    if len(cells) != layout.column_count:
        raise DataError(
            f"{where}: {len(cells)} column{'s' if len(cells) != 1 else ''} where the first line has "
            f"{layout.column_count}. {comment_hint(cells[0]) or 'Each line should be: head, relation, tail.'}"
        )
    for part, column in zip(("head", "relation", "tail"), layout.columns, strict=True):
        if not cells[column].strip():
            raise DataError(f"{where}: the {part} is empty. Fill it in or remove the line.")
    if layout.weight is not None:
        check_weight(cells[layout.weight], where)
