"""The one way kgcf compiles a loop: numba, cached on disk, with the interpreter lock released."""

import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core.caching import FunctionCache

P = ParamSpec("P")
T = TypeVar("T")


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


class _KernelCache(FunctionCache):
    """Numba's cache; what cannot be read is compiled again, what cannot be written is not kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401
        """The compiled code of a signature, None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401
        """Keep the compiled code of a signature where there is room."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            _notice(f"compiled code cannot be kept in {self.cache_path} ({error.strerror}), so that starting is slow")


def _kept(function: Callable[..., object]) -> _KernelCache | None:
    """A cache beside the code or in the user's cache folder, else in a temporary folder; None if nothing is writable.

    Numba raises where it has no place, as in a read-only installation of a user without a home.
    """
    try:
        return _KernelCache(function)  # type: ignore[no-untyped-call]
    except RuntimeError:
        folder = temporary_cache()
    if folder is None:
        _notice("there is no folder to keep compiled code in, so that every start is slow; NUMBA_CACHE_DIR names one")
        return None
    _notice(f"compiled code is kept in {folder}, for want of a better place; NUMBA_CACHE_DIR names one")
    config: Any = numba.config
    usual, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return _KernelCache(function)  # type: ignore[no-untyped-call]
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
    print(f"note: {text}.", file=sys.stderr)
