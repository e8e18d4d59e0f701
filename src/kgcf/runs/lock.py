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
    with writing(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not _lock(handle, path):
            raise StorageError(busy)
        yield
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
