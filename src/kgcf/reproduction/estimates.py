"""How long cells will take, by what finished ones took: whoever starts hours of work wants to know how many."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from statistics import median

from kgcf.durations import spoken
from kgcf.reproduction.cells import Cell
from kgcf.reproduction.store import Store

_LENGTH = ("training.", "encoder.layers", "encoder.semantics", "encoder.context")  # settings that decide the time


@dataclass(frozen=True)
class Estimate:
    """Seconds of one process for a list of cells, as far as something alike is finished."""

    seconds: float
    known: int  # cells that it is made of
    unknown: tuple[Cell, ...]  # those that nothing finished is like

    def __str__(self) -> str:
        """For people; empty where there is nothing to do."""
        if not self.known and not self.unknown:
            return ""
        if not self.known:
            return f"How long {self._count(len(self.unknown))} will take cannot be told: nothing alike is finished."
        more = ""
        if self.unknown:
            graphs = ", ".join(dict.fromkeys(cell.dataset for cell in self.unknown))
            more = f" Nothing is known of {self._count(len(self.unknown))} more ({graphs})."
        return (
            f"About {spoken(self.seconds)} of one process for {self._count(self.known)}, by what finished ones took; "
            f"a busy machine takes longer.{more}"
        )

    @staticmethod
    def _count(cells: int) -> str:
        return "1 cell" if cells == 1 else f"{cells} cells"


class Estimates:
    """The times of the finished cells of a folder."""

    def __init__(self, store: Store) -> None:
        self._seconds: dict[Hashable, list[float]] = defaultdict(list)
        for cell, result in store.finished():
            if times := result.get("times"):
                took = float(times["training_seconds"]) + float(times.get("evaluation_seconds", 0.0))
                for likeness in _likenesses(cell):
                    self._seconds[likeness].append(took)

    def seconds(self, cell: Cell) -> float | None:
        """The median of other seeds; else a time that is given, else of the same model, else of the same graph."""
        exact, *rougher = _likenesses(cell)
        if exact in self._seconds:
            return median(self._seconds[exact])
        if cell.seconds is not None:
            return cell.seconds
        return next((median(self._seconds[each]) for each in rougher if each in self._seconds), None)

    def of(self, cells: Iterable[Cell]) -> Estimate:
        """All of them together."""
        each = [(cell, self.seconds(cell)) for cell in cells]
        known = [seconds for _, seconds in each if seconds is not None]
        return Estimate(sum(known), len(known), tuple(cell for cell, seconds in each if seconds is None))


def _likenesses(cell: Cell) -> list[Hashable]:
    """What a cell is like, the nearest first: all but the seed, the model and its length, the graph and its length."""
    length = tuple(change for change in cell.changes if change.startswith(_LENGTH))
    alike = (cell.kind, cell.dataset, length)
    own = cell.model == "kgcf"
    return [
        (*alike, cell.model, cell.preset, cell.changes, cell.seconds),
        (*alike, cell.model, cell.preset),
        (*alike, own),
    ]
