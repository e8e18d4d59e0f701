"""Files that are whole or absent: atomic writes, and arrays that can be mapped into memory."""

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from kgcf.errors import StorageError

_DTYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
}


TEMPORARY = ".part"  # how the name of a file ends that is being written
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
DISK = (*_FULL, *_FORBIDDEN, errno.EIO)  # what a disk says, as opposed to a mistake of ours
_PROBE = bytes(4096)  # written to see whether there is room at all


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a full disk or a forbidden folder raises in the block into one sentence about `path`.

    Every writer of kgcf goes through here.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise StorageError(cannot_write(path, error)) from error


def cannot_write(path: Path | str, error: Exception) -> str:
    """What went wrong while writing, and what to do about it."""
    number = error.errno if isinstance(error, OSError) else _hidden_number(str(error))
    reason = str(error).strip() or type(error).__name__
    if number is not None:
        reason = os.strerror(number)
    advice = ""
    if number in _FULL:
        advice = " Make room on that disk and try again."
    elif number in _FORBIDDEN:
        advice = " Choose a place that you may write to."
    return f"Could not write {path}: {reason.rstrip('.')}. Nothing was replaced.{advice}"


def _hidden_number(text: str) -> int | None:
    """The number in "(os error 28)", which is all that safetensors says of an error of the system."""
    found = re.search(r"\(os error (\d+)\)", text)
    return None if found is None else int(found[1])


def make_folder(path: Path) -> None:
    """Make a folder and its parents; one that exists is as good."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before the work whose result it should hold; leaves nothing behind."""
    with writing(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        folder = path.parent
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        with tempfile.TemporaryFile(prefix=".kgcf.", dir=folder) as probe:
            probe.write(_PROBE)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; rename it to `path` if the block succeeds, delete it if not."""
    make_folder(path.parent)
    with writing(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=TEMPORARY, dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Let the renaming survive a power cut, where the system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a text file so that a reader sees the old content or the new, never a part."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write a value as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def save_arrays(
    path: Path, arrays: Mapping[str, NDArray[np.generic]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named arrays as one `.safetensors` file, atomically."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with replacing(path) as temporary:
        safetensors.numpy.save_file(contiguous, temporary, dict(metadata or {}))


def read_header(path: Path) -> tuple[dict[str, dict[str, object]], dict[str, str], int]:
    """Tensor descriptions, metadata and the position of the data in a `.safetensors` file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > size - 8:
                raise StorageError(f"{path} is truncated: its header is not complete.")
            header: dict[str, dict[str, object]] = json.loads(file.read(length))
    except OSError as error:
        raise StorageError(f"Could not read {path}: {error.strerror or error}.") from error
    except ValueError as error:
        raise StorageError(f"{path} is not a safetensors file: its header does not parse.") from error
    metadata = {key: str(value) for key, value in header.pop("__metadata__", {}).items()}
    start = 8 + length
    needed = start + max((_span(entry)[1] for entry in header.values()), default=0)
    if size < needed:
        raise StorageError(f"{path} is truncated: {size:,} bytes where its header promises {needed:,}.")
    return header, metadata, start


def read_checkpoint_header(path: Path) -> dict[str, str]:
    """The metadata of a checkpoint; of a damaged one it is said how to do without."""
    try:
        return read_header(path)[1]
    except StorageError as error:
        raise StorageError(f"{error} Delete it: `kgcf resume` then begins this stage anew.") from error


def map_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """Open the arrays of a `.safetensors` file as read-only views of the file, without loading them."""
    header, _, start = read_header(path)
    mapped = np.memmap(path, dtype=np.uint8, mode="r")
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, entry in header.items():
        begin, end = _span(entry)
        kind, shape = str(entry["dtype"]), entry["shape"]
        if kind not in _DTYPES or not isinstance(shape, list):
            raise StorageError(f"{path} holds '{name}' of type {kind}, which this version of kgcf does not read.")
        view: NDArray[np.generic] = np.asarray(mapped[start + begin : start + end]).view(_DTYPES[kind])
        arrays[name] = view.reshape(shape)
    return arrays


def _span(entry: Mapping[str, object]) -> tuple[int, int]:
    offsets = entry["data_offsets"]
    assert isinstance(offsets, list)
    return int(offsets[0]), int(offsets[1])


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
