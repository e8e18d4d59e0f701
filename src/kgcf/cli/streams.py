"""Standard output and error as people use them: piped into `head`, on ASCII terminals, on full disks, as a file.

A reader that goes away (`| head`) ends nothing: the rest of the output is dropped and the command finishes its work.
Characters that a terminal cannot show become question marks.
"""

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from kgcf.errors import StorageError

STANDARD = Path("-")  # as the name of an output file


def prepare_streams() -> None:
    """Make standard output and error patient; a stream that was closed before we began swallows everything."""
    sys.stdout = _patient(sys.stdout, "Standard output")
    sys.stderr = _patient(sys.stderr, "Standard error")


def deliver(output: Path, ending: str, write: Callable[[Path], None]) -> None:
    """Let `write` make a file at `output`; for `-`, make it elsewhere and send its bytes to standard output."""
    if output != STANDARD:
        write(output)
        return
    with tempfile.TemporaryDirectory(prefix="kgcf-output-") as folder:
        made = Path(folder) / f"output{ending}"
        write(made)
        sys.stdout.flush()
        with made.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()


def _patient(stream: TextIO | None, title: str) -> TextIO:
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):  # replaced by somebody, who then knows how to write
        return stream
    stream.reconfigure(errors="replace")
    if stream.isatty():
        return stream
    stream.flush()
    try:
        number = stream.fileno()
    except io.UnsupportedOperation:  # in memory: nothing can go wrong there
        return stream
    raw = _PatientFile(number, title)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _PatientFile(io.FileIO):
    """A pipe or file that drops what it is given once its reader has gone, and says once if it cannot be written."""

    def __init__(self, number: int, title: str) -> None:
        super().__init__(number, "w", closefd=False)
        self._title = title
        self._given_up = False

    def write(self, data: Any) -> int:  # noqa: ANN401
        """Write bytes, or pretend to."""
        if not self._given_up:
            try:
                return super().write(data) or 0
            except BrokenPipeError:
                self._given_up = True
            except OSError as error:
                self._given_up = True
                raise StorageError(f"{self._title} cannot be written: {error.strerror}.") from error
        return memoryview(data).nbytes
