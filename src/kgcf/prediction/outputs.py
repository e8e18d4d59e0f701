"""Proposed triples as files: TSV, CSV, Parquet, JSON Lines, N-Triples; the ending of the name decides.

Every format but N-Triples has labels and names side by side. N-Triples has the terms that were read, or IRIs that are
read back as the labels (see `kgcf.data.terms`), and the names in comments: names are no links.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from kgcf.choices import OutputFormat
from kgcf.data.terms import write_term
from kgcf.errors import SettingsError
from kgcf.prediction.answers import Answer
from kgcf.screen import inert
from kgcf.storage import replacing, write_text

FORMATS = tuple(f".{name}" for name in get_args(OutputFormat))
_COLUMNS = [f.name for f in fields(Answer)]


def check_format(path: Path, kind: str) -> None:
    """Refuse an ending that we cannot write, before any work is done."""
    if kind not in FORMATS:
        raise SettingsError(f"Cannot tell the format of {path}: its name must end in {', '.join(FORMATS)}.")


def write_answers(answers: Sequence[Answer], path: Path, kind: str | None = None) -> None:
    """Write the answers atomically in the format that `kind`, or else the ending of the file, names."""
    kind = kind or path.suffix.lower()
    check_format(path, kind)
    rows = [asdict(answer) for answer in answers]
    if kind == ".parquet":
        columns = {name: [row[name] for row in rows] for name in _COLUMNS}
        with replacing(path) as temporary:
            pq.write_table(pa.table(columns), temporary)
    elif kind == ".jsonl":
        write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    elif kind == ".nt":
        write_text(path, "".join(map(_statement, answers)))
    else:
        lines = _tab_separated(rows) if kind == ".tsv" else _comma_separated(rows)
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            file.writelines(lines)


def _statement(answer: Answer) -> str:
    """A line of N-Triples, with the names behind it where they are not the labels."""
    terms = write_term(answer.head, "subject"), write_term(answer.relation, "predicate")
    names = (answer.head_name, answer.relation_name, answer.tail_name)
    comment = "" if names == (answer.head, answer.relation, answer.tail) else "  # {} —{}→ {}".format(*names)
    return f"{' '.join(terms)} {write_term(answer.tail, 'object')} .{inert(comment)}\n"


def _comma_separated(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """CSV; a cell is quoted where it must be."""
    for cells in _table(rows):
        yield ",".join(_quoted(cell) if any(c in cell for c in ',"\r\n') else cell for cell in cells) + "\n"


def _tab_separated(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """TSV as it is usually read, without quotes; where a text has a tab or a line break, all cells are quoted."""
    split = any(c in cell for cells in _table(rows) for cell in cells for c in "\t\r\n")
    for cells in _table(rows):
        yield "\t".join(map(_quoted, cells) if split else cells) + "\n"


def _table(rows: Sequence[dict[str, Any]]) -> Iterable[list[str]]:
    """The cells of the header and of every row."""
    yield _COLUMNS
    for row in rows:
        yield ["" if row[name] is None else str(row[name]) for name in _COLUMNS]


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'
