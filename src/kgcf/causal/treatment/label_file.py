"""The treatment from labels that the user gives: the paper allows any property of the entities."""

import csv
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np

from kgcf.causal.treatment.labels import LabelTable
from kgcf.causal.treatment.settings import TreatmentSettings
from kgcf.causal.treatment.treatment import Labelling, Sources, Treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError, SettingsError
from kgcf.storage import replacing

_HEADERS = (["entity", "label"], ["entity", "relation", "label"])


@final
class FileLabels(Treatment):
    """c(v), or c_r(v), stands in a file: lines `entity<TAB>label` or `entity<TAB>relation<TAB>label`, or CSV.

    The labels do not come from the graph, so hidden triples do not change them.
    """

    @classmethod
    def label(cls, sources: Sources, settings: TreatmentSettings) -> Labelling:
        """Read the file that the settings name."""
        if settings.path is None or sources.entities is None or sources.relations is None:
            raise SettingsError(
                "The treatment 'file' understands names, so it needs the vocabularies of entities and relations."
            )
        rows = _read_rows(settings.path, sources.entities, sources.relations)
        return Labelling(rows.table(len(sources.entities), len(sources.relations)), None, rows.notes(settings.path))

    def make_rule(self) -> None:
        """Hidden triples change nothing."""
        return

    def labels_on(self, part: KnowledgeGraph) -> LabelTable:
        """The same: labels do not come from the graph."""
        return self.labels


def check_label_file(path: Path, entities: Vocabulary, relations: Vocabulary) -> None:
    """Refuse a label file that cannot be used, before anything is made from it."""
    _read_rows(path, entities, relations)


def keep_label_file(settings: TreatmentSettings, folder: Path) -> None:
    """Copy the label file into a run, row for row: its rows may name entities of graphs that come later."""
    if settings.path is None or _kept(settings.path, folder).is_file():
        return
    try:
        content = settings.path.read_bytes()
    except OSError as error:
        raise DataError(f"Could not read the labels in {settings.path}: {error.strerror or error}.") from error
    with replacing(_kept(settings.path, folder)) as temporary:
        temporary.write_bytes(content)


def with_kept_labels(settings: TreatmentSettings, folder: Path) -> TreatmentSettings:
    """The settings of a run, reading its own copy of the label file wherever the original may be now."""
    if settings.path is None or not _kept(settings.path, folder).is_file():
        return settings
    return settings.model_copy(update={"path": _kept(settings.path, folder)})


def _kept(path: Path, folder: Path) -> Path:
    """Where the copy stands; the endings that say how to read it stay."""
    packed = ".gz" if path.name.endswith(".gz") else ""
    kind = ".csv" if path.name.removesuffix(".gz").endswith(".csv") else ".tsv"
    return folder / f"treatment_labels{kind}{packed}"


@dataclass(eq=False)
class _Rows:
    """What a label file says: (relation or −1, entity) → label, the line it stands on, and what is unknown."""

    labels: dict[tuple[int, int], str] = field(default_factory=dict)
    lines: dict[tuple[int, int], int] = field(default_factory=dict)
    unknown: dict[str, tuple[int, int, str]] = field(default_factory=dict)  # kind → how many, first line, first name
    columns: int = 0

    def leave_out(self, kind: str, line: int, name: str) -> None:
        """Count a row about something the graph does not have."""
        count, first, example = self.unknown.get(kind, (0, line, name))
        self.unknown[kind] = (count + 1, first, example)

    def notes(self, path: Path) -> tuple[str, ...]:
        """One sentence per kind of row that was left out."""
        return tuple(
            f"{path}: {count:,} rows name {'an entity' if kind == 'entity' else 'a relation'} that the graph does "
            f"not have and were left out; the first is '{name}' in line {line}."
            for kind, (count, line, name) in self.unknown.items()
        )

    def table(self, entity_count: int, relation_count: int) -> LabelTable:
        """The label table: one group for all relations, or one per relation."""
        keys = np.array(sorted(self.labels), dtype=np.int64).reshape(-1, 2)
        texts = sorted(set(self.labels.values()))
        numbers = {text: i + 1 for i, text in enumerate(texts)}
        labels = np.array([numbers[self.labels[int(r), int(e)]] for r, e in keys], dtype=np.int32)
        groups = np.arange(relation_count, dtype=np.int32) if self.columns == 3 else np.zeros(relation_count, np.int32)
        first, count = (0, relation_count) if self.columns == 3 else (-1, 1)
        offsets = np.searchsorted(keys[:, 0], np.arange(first, first + count + 1)).astype(np.int64)
        return LabelTable(entity_count, groups, offsets, keys[:, 1].astype(np.int32), labels)


def _read_rows(path: Path, entities: Vocabulary, relations: Vocabulary) -> _Rows:
    known_entities, known_relations = _ids(entities), _ids(relations)
    rows = _Rows()
    for line, cells in _cells(path):
        _check_row(path, line, cells, rows)
        entity = known_entities.get(cells[0])
        relation = known_relations.get(cells[1]) if len(cells) == 3 else -1
        if entity is None:
            rows.leave_out("entity", line, cells[0])
        elif relation is None:
            rows.leave_out("relation", line, cells[1])
        else:
            key = (relation, entity)
            if rows.labels.setdefault(key, cells[-1]) != cells[-1]:
                raise DataError(
                    f"{path}, line {line}: '{cells[0]}' has the label '{cells[-1]}' here but "
                    f"'{rows.labels[key]}' in line {rows.lines[key]}. Give each entity one label."
                )
            rows.lines.setdefault(key, line)
    if not rows.labels:
        hint = " ".join(rows.notes(path))
        raise DataError(f"{path} gives no entity of the graph a label. {hint}".rstrip())
    return rows


def _check_row(path: Path, line: int, cells: list[str], rows: _Rows) -> None:
    rows.columns = rows.columns or len(cells)
    if len(cells) not in (2, 3):
        raise DataError(
            f"{path}, line {line} has {len(cells)} columns. A label file has lines 'entity<TAB>label' or "
            "'entity<TAB>relation<TAB>label', with commas instead of tabs if its name ends in .csv."
        )
    if len(cells) != rows.columns:
        raise DataError(
            f"{path}, line {line} has {len(cells)} columns where the lines before have {rows.columns}. "
            "Give labels either per entity or per entity and relation."
        )
    if not all(cells):
        raise DataError(f"{path}, line {line} has an empty cell. Leave the line out if the entity has no label.")


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells of all rows; empty lines and a header are skipped."""
    stem = path.name.removesuffix(".gz")
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig", newline="")
            if stem != path.name
            else path.open(encoding="utf-8-sig", newline="") as file
        ):
            if stem.endswith(".csv"):
                reader = csv.reader(file, strict=True)
                numbered = ((reader.line_num, [cell.strip() for cell in cells]) for cells in reader)
            else:
                numbered = ((i, [c.strip() for c in text.split("\t")]) for i, text in enumerate(file, start=1))
            for position, (line, cells) in enumerate(numbered):
                header = position == 0 and [cell.lower() for cell in cells] in _HEADERS
                if cells not in ([], [""]) and not header:
                    yield line, cells
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"Could not read the labels in {path}: {reason}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}. Save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"{path} is not a CSV file: {error}.") from error


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    """Ids by label, and by display name where it names one thing only and is not itself a label."""
    labels = {label: i for i, label in enumerate(vocabulary.labels())}
    by_name: dict[str, int | None] = {}
    for label, name in vocabulary.names.items():
        by_name[name] = None if name in by_name else labels[label]
    return {**{name: i for name, i in by_name.items() if i is not None}, **labels}
