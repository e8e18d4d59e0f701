"""Progress with the time left, on standard error: a bar where somebody looks, a line per minute where nobody does."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from kgcf.durations import spoken
from kgcf.screen import Screen, cell

Advance = Callable[[int], None]
Clock = Callable[[], float]
MINUTE = 60.0


def silent(_: int) -> None:
    """Report nothing: the default of every long computation in Python."""


@dataclass(frozen=True)
class Position:
    """How far a long computation is."""

    done: int
    total: int
    seconds: float  # since it was first heard of
    begun: int = 0  # what was done already then

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return min(1.0, self.done / max(self.total, 1))

    @property
    def seconds_left(self) -> float | None:
        """At the speed so far; None as long as nothing is done."""
        here = self.done - self.begun
        return None if here <= 0 else max(0, self.total - self.done) * self.seconds / here

    def sentence(self, what: str, more: str = "") -> str:
        """What is done, how much of it, and the time left."""
        left = "" if self.seconds_left is None else f"  {spoken(self.seconds_left)} left"
        return f"{what} {self.share:.0%}{more}{left}"


Tell = Callable[[Position], None]


@dataclass
class Minutes:
    """Tells once a minute where a computation is; may be moved by several threads. Another total is another one."""

    tell: Tell
    clock: Clock = time.monotonic
    _began: tuple[float, int] | None = field(default=None, init=False)
    _total: int = field(default=0, init=False)
    _told: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def at(self, done: int, total: int) -> None:
        """The computation has come so far."""
        with self._lock:
            now = self.clock()
            if self._began is None or total != self._total:
                self._began, self._total, self._told = (now, done), total, now
            if now - self._told < MINUTE:
                return
            self._told = now
            position = Position(done, total, now - self._began[0], self._began[1])
        self.tell(position)


@contextmanager
def showing(description: str, total: int, tell: Tell | None = None) -> Iterator[Advance]:
    """A bar with count, elapsed time and time left; yields the function that moves it forward.

    Once a minute `tell` hears of the position; if it is not given, a line is printed where there is no bar.
    """
    screen = Screen(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )

    def line(position: Position) -> None:
        if not screen.is_terminal:
            screen.print(cell(position.sentence(description), "dim"))

    bar = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
    with counting(total, tell or line) as count, bar:
        task = bar.add_task(description, total=total)

        def advance(steps: int) -> None:
            bar.advance(task, steps)
            count(steps)

        yield advance


@contextmanager
def counting(total: int, tell: Tell, clock: Clock = time.monotonic) -> Iterator[Advance]:
    """No bar, only `tell` once a minute; yields the function that counts."""
    minutes, done = Minutes(tell, clock), 0
    minutes.at(0, total)

    def advance(steps: int) -> None:
        nonlocal done
        done += steps
        minutes.at(done, total)

    yield advance
