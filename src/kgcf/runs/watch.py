"""Training as people watch it: a bar with loss terms, queries per second and the time left; a line per epoch.

Where nobody looks at a bar, in a file or a pipe, there is a line per minute instead.
"""

import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from kgcf.progress import Clock, Minutes, Position
from kgcf.screen import Screen, cell
from kgcf.training.loop import Listener
from kgcf.training.step import TERMS

_OF_MEMORY = ("tails", "relations")  # losses by which the steps of a memory are known


class Told(Listener):
    """Prints warnings and nothing else."""

    def warn(self, text: str) -> None:
        """Print a warning."""
        Screen(stderr=True, wrap=False).print(_warning(text))


class Watcher(Listener):
    """Shows steps on a terminal, or in a line per minute; prints a line per epoch and warnings."""

    def __init__(self, shown: bool, clock: Clock = time.monotonic) -> None:
        self._screen = Screen(stderr=True, wrap=False)
        self._shown = shown
        columns = (
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[terms]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        live = shown and self._screen.is_terminal
        self._lines = shown and not live
        self._minutes = Minutes(self._tell, clock)
        self._stage, self._said = "training", ""  # of the last step: whose it was; epoch, losses and speed
        self._bar = Progress(*columns, console=self._screen, transient=True, disable=not live)
        self._task = self._bar.add_task("", total=None, epoch=1, terms="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        if self._shown:
            self._screen.print(cell(text, "dim"))

    def warn(self, text: str) -> None:
        """Print a warning."""
        if self._shown:
            self._screen.print(_warning(text))

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        """Move the bar."""
        if self._lines:
            self._stage = "memory" if means.keys() & set(_OF_MEMORY) else "training"
            self._said = f"  epoch {epoch + 1}  {_describe(means)}"
            self._minutes.at(done, total)
        self._bar.update(self._task, completed=done, total=total, epoch=epoch + 1, terms=_describe(means))

    def _tell(self, position: Position) -> None:
        self.say(position.sentence(self._stage, self._said))

    def epoch(self, entry: dict[str, float]) -> None:
        """Print a finished epoch."""
        validated = f"  validation MRR {entry['validation_mrr']:.4f}" if "validation_mrr" in entry else ""
        left_out = int(entry["unreached"] + entry["impossible"])
        skipped = f"  {left_out:,} queries without evidence left out" if left_out else ""
        self.say(f"epoch {entry['epoch']:.0f}  {_describe(entry)}{validated}  {entry['seconds']:.0f} s{skipped}")


def _warning(text: str) -> Text:
    return cell(f"Warning: {text}", "yellow")


def _describe(means: dict[str, float]) -> str:
    terms = "  ".join(f"{term} {means[term]:.4f}" for term in (*TERMS, *_OF_MEMORY) if term in means)
    return f"{terms}  {means['queries_per_second']:,.0f} queries/s"
