"""Tables of data: for people they fit the terminal; piped they are tab-separated, with everything in full.

A terminal that is too narrow loses the columns that matter least, and says which; names fold. `KGCF_TABLES=people`
gives the tables for people into a pipe as well.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from kgcf.screen import Screen, cell, print_rows

Cell = Text | str | int | float | None  # None: there is nothing to say
_FOLDED, _NAME = 10, 30  # columns of the screen that a text which folds gets at least, and a name in a report
_WORD = 20  # a word longer than this may break
_GAP = 2  # between two columns


@dataclass(frozen=True)
class Column:
    """How a column looks; `spare`: in a narrow terminal the column with the greatest goes first, 0 stays."""

    title: str
    right: bool = False
    folds: bool = False
    digits: int = 4  # of floats, for people
    spare: int = 0
    least: int = _FOLDED  # of the width, where a longer text folds


@dataclass
class DataTable:
    """Rows of texts and numbers under columns."""

    columns: Sequence[Column]
    rows: list[Sequence[Cell]] = field(default_factory=list)
    title: str = ""
    caption: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What is printed where the table is part of a report."""
        table, left_out = self.for_people(options.max_width)
        yield table
        if left_out:
            yield Text(f"No room for: {', '.join(left_out)}. Widen the terminal.", "dim")

    def add_row(self, *cells: Cell) -> None:
        """One more row."""
        self.rows.append(cells)

    def for_people(self, width: int) -> tuple[Table, list[str]]:
        """The table with the columns that have room, and the titles of those that have none."""
        shown = [[_shown(value, c) for value, c in zip(row, self.columns, strict=True)] for row in self.rows]
        kept = list(range(len(self.columns)))
        needed = [_needed(c, [row[at] for row in shown]) for at, c in enumerate(self.columns)]
        while sum(needed[at] + _GAP for at in kept) - _GAP > width:
            spare = [at for at in kept if self.columns[at].spare]
            if not spare:
                break
            kept.remove(max(spare, key=lambda at: self.columns[at].spare))
        table = Table(box=None, header_style="bold", pad_edge=False, title_justify="left", caption_justify="left")
        table.title, table.title_style = cell(self.title) if self.title else None, "bold"
        table.caption = self.caption or None
        for column in (self.columns[at] for at in kept):
            justify = "right" if column.right else "left"
            folds = {"overflow": "fold", "no_wrap": not column.folds, "justify": justify}
            table.add_column(cell(column.title), **folds)  # type: ignore[arg-type]
        for row in shown:
            table.add_row(*(row[at] for at in kept))
        return table, [c.title for at, c in enumerate(self.columns) if at not in kept]

    def for_programs(self) -> list[list[str]]:
        """The titles and all cells in full."""
        return [[c.title for c in self.columns], *([_in_full(value) for value in row] for row in self.rows)]


def report_table(title: str, names: Sequence[str], first_to_go: Sequence[str] = (), caption: str = "") -> DataTable:
    """A table of a report: a name that folds, then figures; a narrow terminal loses `first_to_go`, in this order."""
    spare = {name: len(first_to_go) - at for at, name in enumerate(first_to_go)}
    figures = [Column(name, right=True, spare=spare.get(name, 0)) for name in names[1:]]
    return DataTable([Column(names[0], folds=True, least=_NAME), *figures], title=title, caption=caption)


def show_table(table: DataTable, in_full: DataTable | None = None) -> None:
    """Print the table for people, or for programs where standard output is piped; those may be given another."""
    if not for_people():
        print_rows((in_full or table).for_programs())
        return
    screen = Screen()
    shown, left_out = table.for_people(screen.width)
    screen.print(shown)
    if left_out:
        screen.print(f"No room for: {', '.join(left_out)}. Widen the terminal, or use --json.", style="dim")


def for_people() -> bool:
    """Whether somebody looks at standard output."""
    return sys.stdout.isatty() or os.environ.get("KGCF_TABLES") == "people"


def _in_full(value: Cell) -> str:
    return "" if value is None else str(value)


def _shown(value: Cell, column: Column) -> Text:
    if isinstance(value, Text):
        return value
    if value is None or isinstance(value, str):
        return cell(value or "")
    return Text(f"{value:,}" if isinstance(value, int) else f"{value:.{column.digits}f}")


def _needed(column: Column, cells: Sequence[Text]) -> int:
    """The least width at which the column can be read."""
    title = column.title if not column.folds else ""
    widest = max((cell_len(text.plain) for text in (cell(title), *cells)), default=0)
    if not column.folds:
        return widest
    words = [cell_len(word) for text in cells for word in text.plain.split()]
    return min(widest, max(column.least, *(length for length in words if length <= _WORD), 0))
