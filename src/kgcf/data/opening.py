"""Opening a file for its bytes, plain or gzipped."""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kgcf.errors import DataError

_GZIP = b"\x1f\x8b"


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, through gzip if its content says so."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror}.") from error
    with raw:
        compressed = raw.read(2) == _GZIP
        raw.seek(0)
        if not compressed:
            if path.suffix == ".gz" and path.stat().st_size:
                raise DataError(f"{path} is named .gz but is not gzip-compressed. Rename it or compress it.")
            yield raw
            return
        with gzip.open(raw, "rb") as unpacked:
            yield io.BufferedReader(unpacked, 1 << 20)
