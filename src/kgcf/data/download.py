"""One file over HTTP: resumes where it was cut, whole or absent, and clear about what went wrong.

Not pooch: it begins a file anew after a cut, and benchmarks come from slow homes.
"""

import http.client
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

from kgcf import __version__
from kgcf.errors import KgcfError, StorageError
from kgcf.progress import Advance, silent
from kgcf.screen import Screen
from kgcf.storage import DISK, cannot_write, make_folder

TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 4
_CHUNK = 1 << 16
_AGENT = f"kgcf/{__version__}"


class DownloadError(KgcfError):
    """A file could not be fetched; what was received is kept, and the next attempt goes on from there."""


class _CutShortError(Exception):
    """The connection ended before the file did."""


@contextmanager
def showing_bytes(what: str) -> Iterator[Advance]:
    """Bytes received and their speed, on standard error, and only where somebody looks at it."""
    screen = Screen(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(f"fetching {what}", total=None)
        yield lambda count: bar.advance(task, count)


def fetch(
    url: str,
    target: Path,
    *,
    advance: Advance = silent,
    timeout: float = TIMEOUT,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Fetch a URL to a file that appears only when it is complete.

    What was received stays beside it as `NAME.part`; the next attempt, now or in a later run, asks for
    the rest. A server that does not know ranges sends everything again. `advance` counts bytes.
    """
    make_folder(target.parent)
    part = target.with_name(f"{target.name}.part")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _receive(url, part, advance, timeout)
            part.replace(target)
            return
        except urllib.error.HTTPError as error:
            if error.code not in (429, 500, 502, 503, 504) or attempt == ATTEMPTS:
                raise DownloadError(f"{url} answered {error.code} {error.reason}.") from error
        except (OSError, http.client.HTTPException, _CutShortError) as error:
            if isinstance(error, OSError) and error.errno in DISK:
                raise StorageError(cannot_write(part, error)) from error
            if attempt == ATTEMPTS or _no_network(error):
                raise DownloadError(_sentence(url, part, error)) from error
        pause(0.5 * 2**attempt)


def _receive(url: str, part: Path, advance: Advance, timeout: float) -> None:
    """Append to the part file until the server has sent everything."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": _AGENT, "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing left, or another file by now: start again
            error.close()
            part.unlink()
            raise _CutShortError("the part already received does not fit") from error
        raise
    with response:
        resumed = response.status == 206 and _start(response.headers.get("Content-Range")) == have
        length = response.headers.get("Content-Length")
        expected = None if length is None else int(length) + (have if resumed else 0)
        with part.open("ab" if resumed else "wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                advance(len(chunk))
            file.flush()
            os.fsync(file.fileno())
            received = file.tell()
    if expected is not None and received != expected:
        raise _CutShortError(f"{received:,} of {expected:,} bytes received")


def _start(content_range: str | None) -> int:
    """The first byte of `bytes 100-199/200`, −1 if there is none."""
    text = (content_range or "").removeprefix("bytes ").split("-")[0]
    return int(text) if text.isdigit() else -1


def _no_network(error: Exception) -> bool:
    """Whether even the server's name could not be looked up, so that asking again is vain."""
    return isinstance(error, urllib.error.URLError) and isinstance(error.reason, socket.gaierror)


def _sentence(url: str, part: Path, error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    kept = f" {part.stat().st_size:,} bytes are kept and the next attempt goes on from there." if part.exists() else ""
    return f"{url} could not be fetched: {reason or type(error).__name__}. Is this machine online?{kept}"
