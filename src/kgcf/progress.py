"""Progress with the time left, on standard error, and only where somebody looks at it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from kgcf.screen import Screen

Advance = Callable[[int], None]


def silent(_: int) -> None:
    """Report nothing: the default of every long computation in Python."""


@contextmanager
def showing(description: str, total: int) -> Iterator[Advance]:
    """A bar with count, elapsed time and time left; yields the function that moves it forward."""
    screen = Screen(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(task, steps)
