"""How a text file of triples is laid out: delimiter, header, which column is which. Guessed from its start."""

import csv
import re
from dataclasses import dataclass

from kgcf.data.reading_options import AS_IT_STANDS, Reading
from kgcf.errors import DataError

HEAD_NAMES = ("head", "h", "subject", "subj", "s", "source", "src", "from", "head_label", "start", "node1")
RELATION_NAMES = (
    "relation",
    "r",
    "rel",
    "predicate",
    "pred",
    "p",
    "property",
    "edge",
    "relation_label",
    "type",
    "label",
)
TAIL_NAMES = ("tail", "t", "object", "obj", "o", "target", "dst", "to", "tail_label", "end", "node2")
WEIGHT_NAMES = ("weight", "w", "confidence", "score", "probability")

_DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "vertical bar", " ": "space"}
_SAMPLE_LINES = 200


MARK = "#"  # what most files begin a comment with


class EmptyError(DataError):
    """A source without a single triple."""

    def __init__(self, where: object) -> None:
        super().__init__(f"{where} is empty: it has no triples. Each line should be: head, relation, tail.")


@dataclass(frozen=True)
class Layout:
    """Where head, relation, tail and weight stand in every line."""

    delimiter: str
    quoted: bool  # whether "…" may enclose a cell
    header: bool
    column_count: int
    columns: tuple[int, int, int]  # head, relation, tail
    weight: int | None

    def describe(self) -> str:
        """What was assumed, as a phrase."""
        parts = [f"{_DELIMITERS[self.delimiter]} separated", "with a header" if self.header else "no header"]
        if self.columns != (0, 1, 2):
            parts.append("head, relation, tail in columns " + ", ".join(str(c + 1) for c in self.columns))
        if self.weight is not None:
            parts.append(f"weights in column {self.weight + 1}")
        unused = self.column_count - 3 - (self.weight is not None)
        if unused:
            parts.append(f"{unused} other column{'s' if unused > 1 else ''} left out")
        return ", ".join(parts)


def detect_layout(sample: str, where: str, reading: Reading = AS_IT_STANDS) -> Layout:
    """Guess the layout from the first lines of a file; `where` names the file in errors."""
    kept = [
        (number, line)
        for number, line in enumerate(re.split(r"\r\n|\n|\r", sample), start=1)
        if line.strip() and not reading.is_comment(line)
    ]
    if not kept:
        raise EmptyError(where)
    where, header = f"{where}, line {kept[0][0]}", reading.header
    lines = [line for _, line in kept[:_SAMPLE_LINES]]
    _refuse_comment(lines, where)
    delimiter = _detect_delimiter(lines, where)
    quoted = delimiter in ",;" or _has_quoted_header(lines[0])
    rows = split_lines(lines, delimiter, quoted)
    first = rows[0]
    named = match_columns(first) if header is not False else None
    if named is not None:
        columns, weight = named
        return Layout(delimiter, quoted, True, len(first), columns, weight)
    numeric = sum(len(row) == 4 and _is_number(row[3]) for row in rows)
    weight = 3 if len(first) == 4 and 2 * numeric >= len(rows) else None
    if len(first) > 3 and weight is None:
        raise DataError(
            f"{where}: {len(first)} columns and no header that names them. Give three columns (head, relation, "
            "tail), a fourth with a numeric weight, or a header line such as: head, relation, tail, weight."
        )
    unnamed_header = weight is not None and not _is_number(first[3]) and len(rows) > 1
    return Layout(delimiter, quoted, unnamed_header if header is None else header, len(first), (0, 1, 2), weight)


def match_columns(header: list[str]) -> tuple[tuple[int, int, int], int | None] | None:
    """Columns of head, relation, tail, and of a weight, if the cells are names that we know."""
    cells = [cell.strip().lower().lstrip("\ufeff#") for cell in header]
    found = [_position(cells, names) for names in (HEAD_NAMES, RELATION_NAMES, TAIL_NAMES)]
    if None in found or len(set(found)) < 3:
        return None
    head, relation, tail = (int(position) for position in found if position is not None)
    return (head, relation, tail), _position(cells, WEIGHT_NAMES)


def _has_quoted_header(line: str) -> bool:
    """Whether a line of TSV names its columns in quotes; only then do quotes in TSV enclose cells."""
    cells = line.lstrip("\ufeff").split("\t")
    enclosed = all(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells)
    return enclosed and match_columns([cell[1:-1] for cell in cells]) is not None


def split_lines(lines: list[str], delimiter: str, quoted: bool) -> list[list[str]]:
    """Lines to cells."""
    if quoted:
        return list(csv.reader(lines, delimiter=delimiter))
    return [line.split(delimiter) for line in lines]


def _detect_delimiter(lines: list[str], where: str) -> str:
    best = _best_delimiter(lines)
    if best is None:
        raise DataError(
            f"{where}: cannot find three columns in '{_shortened(lines[0])}'. "
            "Each line should be: head, relation, tail, separated by tabs or commas."
        )
    return best


def _best_delimiter(lines: list[str]) -> str | None:
    """The delimiter that cuts most lines into the same three or more cells; tab before comma before the rest."""

    def agreement(delimiter: str) -> float:
        widths = [len(row) for row in split_lines(lines, delimiter, delimiter in ",;")]
        if widths[0] < 3:
            return 0.0
        return sum(width == widths[0] for width in widths) / len(widths)

    best = max(_DELIMITERS, key=agreement)
    return None if agreement(best) == 0.0 else best


def _refuse_comment(lines: list[str], where: str) -> None:
    """Refuse a first line that begins with # and is not laid out like the lines below it."""
    below = [line for line in lines if not comment_hint(line)]
    if not comment_hint(lines[0]) or not below:
        return
    delimiter = _best_delimiter(below)
    if delimiter is not None:
        first, second = split_lines([lines[0], below[0]], delimiter, delimiter in ",;")
        if len(first) == len(second):
            return
    raise DataError(f"{where}: '{_shortened(lines[0])}' is no triple. {comment_hint(lines[0])}")


def _shortened(line: str) -> str:
    return line if len(line) <= 80 else line[:77] + "..."


def comment_hint(line: str) -> str:
    """What to do about a line that looks like a comment; nothing for others."""
    if not line.lstrip(" \ufeff").startswith(MARK):
        return ""
    return f"It looks like a comment: skip such lines with --comment '{MARK}' (in Python: comment='{MARK}')."


def _position(cells: list[str], names: tuple[str, ...]) -> int | None:
    return next((cells.index(name) for name in names if name in cells), None)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
