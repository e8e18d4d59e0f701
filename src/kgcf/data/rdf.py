"""N-Triples and Turtle, streamed with pyoxigraph (extra `rdf`).

The rule: links between resources become triples; literals are attributes, not links, and are left
out and counted, except that `rdfs:label` becomes the display name; blank nodes stay, as entities
called `_:id`, and are counted. Labels can be written back as the terms that they were: see `terms`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kgcf.data.layout import EmptyError
from kgcf.data.opening import open_binary
from kgcf.data.parsing import LABELS, TripleTable
from kgcf.data.terms import read_term
from kgcf.errors import DataError, MissingExtraError

RDF_SUFFIXES = {".nt": "N_TRIPLES", ".ttl": "TURTLE"}
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_CHUNK = 1 << 20


@dataclass
class _Numbering:
    """Labels in the order of first appearance."""

    ids: dict[str, int] = field(default_factory=dict)

    def of(self, label: str) -> int:
        return self.ids.setdefault(label, len(self.ids))

    def chunks(self, columns: list["np.ndarray[Any, np.dtype[np.int32]]"]) -> pa.ChunkedArray:
        values = pa.array(list(self.ids), type=pa.string())
        return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(c), values) for c in columns], type=LABELS)


@dataclass
class _Tally:
    literals: int = 0
    names: dict[str, str] = field(default_factory=dict)


def read_rdf(path: Path) -> TripleTable:
    """Read the links of an RDF file, plain or gzipped."""
    entities, relations, tally = _Numbering(), _Numbering(), _Tally()
    chunks: list[np.ndarray[Any, np.dtype[np.int32]]] = []
    rows: list[tuple[int, int, int]] = []
    for subject, predicate, target in _links(path, tally):
        rows.append((entities.of(subject), relations.of(predicate), entities.of(target)))
        if len(rows) == _CHUNK:
            chunks.append(np.array(rows, dtype=np.int32))
            rows.clear()
    if rows:
        chunks.append(np.array(rows, dtype=np.int32))
    if not chunks and not tally.literals:
        raise EmptyError(path)
    if not chunks:
        raise DataError(f"{path} has no links between resources ({tally.literals:,} literals were left out).")
    return TripleTable(
        heads=entities.chunks([c[:, 0] for c in chunks]),
        relations=relations.chunks([c[:, 1] for c in chunks]),
        tails=entities.chunks([c[:, 2] for c in chunks]),
        weights=None,
        notes=(_describe(path, entities, tally),),
        entity_names={label: name for label, name in tally.names.items() if label in entities.ids},
        relation_names={label: name for label, name in tally.names.items() if label in relations.ids},
    )


def _links(path: Path, tally: _Tally) -> Iterator[tuple[str, str, str]]:
    """The triples whose object is a resource; literals are tallied on the way."""
    try:
        import pyoxigraph as ox
    except ImportError as error:
        raise MissingExtraError(f"Reading {path.name}", "rdf") from error
    suffix = next(s.lower() for s in reversed(path.suffixes) if s.lower() in RDF_SUFFIXES)
    kind = getattr(ox.RdfFormat, RDF_SUFFIXES[suffix])
    with open_binary(path) as stream:
        try:
            for quad in ox.parse(stream, format=kind, base_iri=path.resolve().as_uri()):
                if isinstance(quad.object, ox.Literal):
                    _tally_literal(quad, tally)
                else:
                    subject, predicate = read_term(quad.subject, "subject"), read_term(quad.predicate, "predicate")
                    yield subject, predicate, read_term(quad.object, "object")
        except SyntaxError as error:
            line = f", line {error.lineno}" if error.lineno else ""
            raise DataError(f"{path}{line}: not valid {suffix[1:].upper()}: {error.msg}") from error
        except (EOFError, OSError) as error:
            raise DataError(f"{path} is damaged or cut short: {error}. Fetch it again.") from error


def _tally_literal(quad: Any, tally: _Tally) -> None:  # noqa: ANN401
    """Count a literal; keep it as a name if it is a label, English before others."""
    tally.literals += 1
    if quad.predicate.value == _LABEL and quad.object.value.strip():
        language = (quad.object.language or "").split("-")[0]
        subject = read_term(quad.subject, "subject")
        if language == "en" or subject not in tally.names:
            tally.names[subject] = quad.object.value


def _describe(path: Path, entities: _Numbering, tally: _Tally) -> str:
    blank = sum(label.startswith("_:") for label in entities.ids)
    return (
        f"{path.name}: RDF; {tally.literals:,} literals left out"
        f"{f' ({len(tally.names):,} used as names)' if tally.names else ''}, "
        f"{blank:,} blank node{'s' if blank != 1 else ''} kept as entities"
    )
