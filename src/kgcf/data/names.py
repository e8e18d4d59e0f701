"""Display names: `label<TAB>name` files for entities and relations."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from kgcf.data.opening import open_binary
from kgcf.errors import DataError


def read_names(path: Path) -> dict[str, str]:
    """Read a file of `label<TAB>name` lines, plain or gzipped; further columns are left out."""
    names: dict[str, str] = {}
    for number, line in _lines(path):
        cells = line.split("\t")
        if len(cells) < 2 or not cells[0] or not cells[1].strip():
            raise DataError(f"{path}, line {number}: expected a label, a tab and a name, found '{line[:80]}'.")
        names[cells[0]] = cells[1].strip()
    if not names:
        raise DataError(f"{path} is empty: it should have lines of a label, a tab and a name.")
    return names


def read_dictionary(path: Path) -> list[str]:
    """Read `entities.dict` / `relations.dict`: labels in the order of their ids, either column first."""
    rows = [(number, line.split("\t")) for number, line in _lines(path)]
    for number, cells in rows:
        if len(cells) != 2:
            raise DataError(f"{path}, line {number}: expected an id, a tab and a label, found {len(cells)} columns.")
    for column in (0, 1):
        ids = [cells[column] for _, cells in rows]
        if all(text.isdecimal() for text in ids):
            labels = {int(text): cells[1 - column] for text, (_, cells) in zip(ids, rows, strict=True)}
            if sorted(labels) == list(range(len(rows))):
                return [labels[i] for i in range(len(rows))]
    raise DataError(f"{path}: one of its two columns must count the labels from 0 to {len(rows) - 1} without gaps.")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with open_binary(path) as stream:
            for number, raw in enumerate(stream, start=1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if line:
                    yield number, line
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not valid UTF-8: {error.reason}. Save it as UTF-8.") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is damaged or cut short: its gzip data is not complete. Fetch it again.") from error
