"""Results that are kept: the key is a hash of every input, stored inside the file and compared when it is read."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgcf.data.locations import cache_folder
from kgcf.errors import StorageError
from kgcf.storage import map_arrays, read_header, save_arrays

FORMAT = 1  # part of every key: raise it when a result changes its meaning
Arrays = dict[str, NDArray[np.generic]]


def ignore(_: str) -> None:
    """Hear a notice and do nothing."""


@dataclass(frozen=True)
class Cache:
    """A folder of results; with `folder` None nothing is kept. `notify` hears what is taken and what went wrong."""

    folder: Path | None
    notify: Callable[[str], None] = ignore

    def arrays(
        self, kind: str, inputs: Mapping[str, object], compute: Callable[[], Mapping[str, NDArray[np.generic]]]
    ) -> Arrays:
        """The arrays kept for these inputs, or those that `compute` returns, which are then kept.

        A file that is truncated, damaged or belongs to other inputs is computed again, with a notice.
        """
        if self.folder is None:
            return dict(compute())
        key, path = _location(self.folder, kind, inputs)
        if path.exists():
            try:
                kept = _read(path, key)
            except StorageError as error:
                self.notify(f"{error} The {kind} is computed again.")
            else:
                self.notify(f"{kind}: taken from the cache")
                return kept
        found = dict(compute())
        try:
            save_arrays(path, found, {"key": key, "digest": _digest(found)})
        except (StorageError, OSError) as error:
            self.notify(f"The {kind} could not be kept: {error}")
        return found

    def holds(self, kind: str, inputs: Mapping[str, object]) -> bool:
        """Whether there is a file for these inputs; it may still turn out to be damaged."""
        return self.folder is not None and _location(self.folder, kind, inputs)[1].exists()


def user_cache(notify: Callable[[str], None] = ignore) -> Cache:
    """The cache of this user, which commands and runs share."""
    return Cache(cache_folder() / "causal", notify)


def _location(folder: Path, kind: str, inputs: Mapping[str, object]) -> tuple[str, Path]:
    """The key of the inputs, and the file that their result is kept in."""
    key = cache_key(kind, inputs)
    return key, folder / f"{kind.replace(' ', '-')}-{key[:20]}.safetensors"


def cache_key(kind: str, inputs: Mapping[str, object]) -> str:
    """sha256 of the kind and all inputs, which must be plain JSON values."""
    text = json.dumps([FORMAT, kind, dict(inputs)], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path, key: str) -> Arrays:
    metadata = read_header(path)[1]
    if metadata.get("key") != key:
        raise StorageError(f"The kept file {path} belongs to other inputs.")
    found = {name: np.array(array) for name, array in map_arrays(path).items()}
    if _digest(found) != metadata.get("digest"):
        raise StorageError(f"The kept file {path} is damaged: its content does not fit its checksum.")
    return found


def _digest(arrays: Mapping[str, NDArray[np.generic]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
