"""Proposed triples as files: TSV, CSV, Parquet, JSON Lines, N-Triples; the ending of the name decides."""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from kgcf.errors import SettingsError
from kgcf.prediction.answers import Answer
from kgcf.storage import replacing, write_text

FORMATS = (".tsv", ".csv", ".parquet", ".jsonl", ".nt")
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
        write_text(path, "".join(f"{_iri(a.head)} {_iri(a.relation)} {_iri(a.tail)} .\n" for a in answers))
    else:
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if kind == ".tsv" else ",", lineterminator="\n")
            writer.writerow(_COLUMNS)
            writer.writerows([row[name] for name in _COLUMNS] for row in rows)


def _iri(name: str) -> str:
    """A label as an N-Triples term: IRIs and blank nodes as they are, other names under urn:kgcf:."""
    if name.startswith("_:"):
        return name
    if "://" in name or name.startswith("urn:"):
        return f"<{quote(name, safe=':/?#[]@!$&()*+,;=%~-._')}>"
    return f"<urn:kgcf:{quote(name, safe='')}>"
