"""Long work beside the questions: one at a time, with progress, and it can be stopped."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from kgcf.errors import KgcfError
from kgcf.progress import Advance
from kgcf.web.lane import Abandoned

Work = Callable[[Advance], str]  # says in a sentence what came of it


class RunningError(KgcfError):
    """Something else is running."""


@dataclass(frozen=True)
class Progress:
    """How far the work is."""

    state: Literal["idle", "running", "done", "stopped", "failed"] = "idle"
    title: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0  # so far
    message: str = ""  # what came of it

    @property
    def share(self) -> float:
        """Done of all, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


class Background:
    """Does one piece of work at a time in a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress = Progress()
        self._started = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def progress(self) -> Progress:
        """How far it is now."""
        with self._lock:
            if self._progress.state != "running":
                return self._progress
            return replace(self._progress, seconds=time.monotonic() - self._started)

    def start(self, title: str, total: int, work: Work) -> Progress:
        """Begin, unless something is running."""
        with self._lock:
            if self._progress.state == "running":
                raise RunningError(f"{self._progress.title} is still running. Wait until it ends, or stop it.")
            self._stop.clear()
            self._started = time.monotonic()
            self._progress = Progress("running", title, 0, total)
            self._thread = threading.Thread(target=self._do, args=(work,), daemon=True)
            self._thread.start()
            return self._progress

    def stop(self) -> Progress:
        """Ask the work to end; it does when it next says how far it is."""
        self._stop.set()
        self.join()
        return self.progress

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end of the work."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _do(self, work: Work) -> None:
        try:
            self._finish("done", work(self._advance))
        except Abandoned:
            self._finish("stopped", "Stopped; nothing of it was kept.")
        except KgcfError as error:
            self._finish("failed", str(error))
        except BaseException as error:
            self._finish("failed", f"It failed: {type(error).__name__}: {error}")
            raise

    def _advance(self, steps: int) -> None:
        with self._lock:
            self._progress = replace(self._progress, done=self._progress.done + steps)
        if self._stop.is_set():
            raise Abandoned

    def _finish(self, state: Literal["done", "stopped", "failed"], message: str) -> None:
        with self._lock:
            seconds = time.monotonic() - self._started
            self._progress = replace(self._progress, state=state, message=message, seconds=seconds)
