"""Small tables as text and as HTML, for `repr` and for notebooks; what comes from data is shown, never obeyed."""

from collections.abc import Iterable, Sequence
from html import escape

from rich.cells import cell_len

from kgcf.screen import inert

Row = Sequence[str]
Location = str  # "<" or ">": where a column's cells stand


def text_table(titles: Row, rows: Iterable[Row], positions: Sequence[Location]) -> str:
    """Columns as wide as their widest cell, two spaces apart; no line ends in spaces."""
    lines = [[inert(text) for text in row] for row in (titles, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(_padded, line, widths, positions)).rstrip() for line in lines)


def html_table(titles: Row, rows: Iterable[Row], positions: Sequence[Location], caption: str = "") -> str:
    """A table for a notebook, with a caption above it."""
    above = f"<caption style='text-align:left'>{html_text(caption)}</caption>" if caption else ""
    head = _html_row("th", titles, positions)
    body = "".join(_html_row("td", row, positions) for row in rows)
    return f"<table>{above}<thead>{head}</thead><tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """A text from data, as a page shows it."""
    return escape(inert(text))


def _html_row(kind: str, cells: Row, positions: Sequence[Location]) -> str:
    sides = ("right" if position == ">" else "left" for position in positions)
    shown = (
        f"<{kind} style='text-align:{side}'>{html_text(text)}</{kind}>" for text, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(shown)}</tr>"


def _padded(text: str, width: int, position: Location) -> str:
    space = " " * (width - cell_len(text))
    return space + text if position == ">" else text + space
