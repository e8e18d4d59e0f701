"""The one way kgcf compiles a loop: numba, cached on disk, with the interpreter lock released.

Numba recompiles a function when its own file changes, but not when a kernel of another file that it calls does. Our
cache follows the sources: a change in any file that defines kernels makes all of them compile anew.
"""

import hashlib
import os
import pickle
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

P = ParamSpec("P")
T = TypeVar("T")

PACKAGE = Path(__file__).resolve().parents[1]
_USES = (b"kgcf.machine.compiled", b"numba", b"NamedTuple")  # in files that define kernels, or what they are given
_FOLDER = "kernels-"  # and the stamp of the sources that the code in it was compiled from
_WORTH_A_WORD = 2.0  # seconds of compiling after which somebody who waits wants to know why


def kernel(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function of arrays and numbers; its annotations stay true for the type checker.

    The compiled function releases the lock, so that kernels run side by side in Python threads.
    """
    return _compiled(function)


def reassociated(function: Callable[P, T]) -> Callable[P, T]:
    """Compile with sums that may be reordered: only so does a dot product of floats use the vector units."""
    return _compiled(function, fastmath={"reassoc", "contract"})


def _compiled(function: Callable[P, T], fastmath: bool | set[str] = False) -> Callable[P, T]:
    compiled: Any = numba.njit(nogil=True, fastmath=fastmath)(function)
    kept = _kept(function)
    if kept is not None:
        compiled._cache = kept  # what njit(cache=True) does, with a cache that can do without its disk
    result: Callable[P, T] = compiled
    return result


@cache
def sources_stamp(package: Path = PACKAGE) -> str:
    """sha256 of all files of the package that define kernels."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        if any(word in content for word in _USES):
            digest.update(f"{path.relative_to(package)} {len(content)} ".encode())
            digest.update(content)
    return digest.hexdigest()


class _Waiting:
    """How long this process has been compiling; once it is long, and somebody watches, it says so."""

    def __init__(self) -> None:
        self.seconds = 0.0  # of what is compiled
        self.outermost: object = None  # what is being compiled now, with all that it calls
        self.since = 0.0
        self.told = False

    def begin(self, kernel: object) -> None:
        """Nothing is kept for a kernel, so that it is compiled now."""
        if self.outermost is None:
            self.outermost, self.since = kernel, time.monotonic()
        if self.seconds + time.monotonic() - self.since > _WORTH_A_WORD and not self.told and sys.stderr.isatty():
            self.told = True
            _notice("compiling for this machine, once after an installation or a change; about a minute in all")

    def end(self, kernel: object) -> None:
        """A kernel is compiled."""
        if kernel is self.outermost:
            self.seconds += time.monotonic() - self.since
            self.outermost = None


_waiting = _Waiting()


def compiling_seconds() -> float:
    """How long this process has been compiling: what it would not do again."""
    return _waiting.seconds


class _KernelCache(FunctionCache):
    """Numba's cache; what cannot be read is compiled again, what cannot be written is not kept."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self.folder = Path(self._cache_path) / f"{_FOLDER}{sources_stamp()[:16]}"
        self._cache_path = str(self.folder)
        stamp, base = self._impl.locator.get_source_stamp(), self._impl.filename_base
        self._cache_file: Any = IndexDataCacheFile(self._cache_path, base, stamp)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401
        """The compiled code of a signature, None if there is none that can be read."""
        try:
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (OSError, EOFError, ImportError, AttributeError, pickle.UnpicklingError):
            found = None
        if found is None:
            _waiting.begin(self)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401
        """Keep the compiled code of a signature where there is room."""
        _waiting.end(self)
        try:
            _make_folder(self.folder)
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            _notice(f"compiled code cannot be kept in {self.cache_path} ({error.strerror}), so that starting is slow")


@cache
def _make_folder(folder: Path) -> None:
    """Make the folder of these sources, and remove what was compiled from earlier ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.parent.glob(f"{_FOLDER}*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    for old in folder.parent.glob("*.nb[ic]"):  # of versions that had no folder
        old.unlink(missing_ok=True)


def _kept(function: Callable[..., object]) -> _KernelCache | None:
    """A cache beside the code or in the user's cache folder, else in a temporary folder; None if nothing is writable.

    Numba raises where it has no place, as in a read-only installation of a user without a home.
    """
    try:
        return _KernelCache(function)
    except RuntimeError:
        folder = temporary_cache()
    if folder is None:
        _notice("there is no folder to keep compiled code in, so that every start is slow; NUMBA_CACHE_DIR names one")
        return None
    _notice(f"compiled code is kept in {folder}, for want of a better place; NUMBA_CACHE_DIR names one")
    config: Any = numba.config
    usual, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return _KernelCache(function)
    except RuntimeError:
        return None
    finally:
        config.CACHE_DIR = usual


@cache
def temporary_cache() -> Path | None:
    """A folder of this user among the temporary ones, the same at the next start; None where there is none.

    Compiled code is code: a folder that somebody else owns or may write to is not used.
    """
    owner = os.getuid() if hasattr(os, "getuid") else 0
    try:
        folder = Path(tempfile.gettempdir()) / f"kgcf-compiled-{owner}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & 0o022:
            return folder
        return Path(tempfile.mkdtemp(prefix="kgcf-compiled-"))
    except OSError:
        return None


@cache
def _notice(text: str) -> None:
    """Say a thing once, on standard error."""
    sys.stderr.write(f"note: {text}.\n")  # our own words; at import time nothing larger is at hand
