"""One writer at a time: a lock that the system holds for a process and lets go of when the process ends, however."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgcf.errors import StorageError
from kgcf.storage import writing

if sys.platform != "win32":
    import fcntl

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # a file system that knows none


@contextmanager
def held(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock file `path` for the length of the block; where another process does, say `busy`.

    The file stays: it is the lock on it that counts. Where the system knows no locks, the block runs without.
    """
    with tried(path) as free:
        if not free:
            raise StorageError(busy)
        yield


@contextmanager
def tried(path: Path) -> Iterator[bool]:
    """Hold the lock file for the length of the block if nobody else does; yields whether that is so."""
    with writing(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield _lock(handle, path)
    finally:
        os.close(handle)


def _lock(handle: int, path: Path) -> bool:
    """Whether nobody else holds it."""
    if sys.platform == "win32":
        return True
    with writing(path):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
    return True
