"""A run is a folder, complete and portable: data, configuration, stages, model, results. No pickle anywhere."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgcf import __version__
from kgcf.config import Settings, read_values, settings_from, write_toml
from kgcf.data.dataset import Dataset, Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import StorageError
from kgcf.storage import map_arrays, save_arrays, write_json, write_text

FORMAT = 1
_CHANGING = (
    "checkpoint.safetensors",
    "log.jsonl",
    "results.json",
    "calibration.json",
    "reliability.png",
)  # not part of what is checked when opening


class RunFolder:
    """Reads and writes the parts of a run; each file is written under a temporary name and renamed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path:
        """The path of one part."""
        return self.path / name

    def create(self, data: Dataset, settings: Settings, preset: str) -> None:
        """Make the folder with everything that is known before training; refuse one that is in use."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise StorageError(
                f"{self.path} exists already. Nothing was changed: choose another --output, "
                f"or continue the run in it with: kgcf resume {self.path}"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.file("config.toml"), write_toml(settings))
        write_text(self.file("entities.txt"), _lines(data.entities))
        write_text(self.file("relations.txt"), _lines(data.relations))
        data.graph.save(self.file("graph.safetensors"))
        arrays: dict[str, NDArray[np.generic]] = {"valid": data.valid.queries, "test": data.test.queries}
        if data.inductive:
            write_text(self.file("new_entities.txt"), _lines(data.test.entities))
            data.test.observed.save(self.file("new_graph.safetensors"))
            arrays["new_known"] = data.test.known.triples
        save_arrays(self.file("splits.safetensors"), arrays)
        facts = {"dataset": data.name, "preset": preset, "notes": list(data.notes), "inductive": data.inductive}
        write_json(self.file("data.json"), facts)
        self.seal()

    def seal(self) -> None:
        """Write run.json: versions and the sha256 of every file that must not change behind our back."""
        names = sorted(p.name for p in self.path.iterdir() if p.is_file() and not p.name.startswith("."))
        kept = [name for name in names if name != "run.json" and name not in _CHANGING]
        sums = {name: _sha256(self.file(name)) for name in kept}
        write_json(self.file("run.json"), {"format": FORMAT, "kgcf": __version__, "sha256": sums})

    def check(self) -> None:
        """Refuse a folder that is no run, was written by a newer version, or has missing or damaged files."""
        if not self.file("run.json").is_file():
            raise StorageError(f"{self.path} is not a run: it has no run.json. A run is what `kgcf train` writes.")
        try:
            facts = json.loads(self.file("run.json").read_text(encoding="utf-8"))
            version, sums = int(facts["format"]), dict(facts["sha256"])
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{self.file('run.json')} is damaged. Restore it from a copy of the run.") from error
        if version > FORMAT:
            raise StorageError(
                f"{self.path} was written by kgcf {facts.get('kgcf')} in format {version}; this is kgcf {__version__}, "
                f"which reads format {FORMAT}. Upgrade kgcf."
            )
        for name, wanted in sums.items():
            if not self.file(name).is_file():
                raise StorageError(f"{self.path} lacks {name}. Restore it from a copy of the run, or train again.")
            if _sha256(self.file(name)) != wanted:
                raise StorageError(f"{self.file(name)} is damaged: its checksum differs. Restore it, or train again.")

    def settings(self) -> Settings:
        """The effective configuration."""
        return settings_from(read_values(self.file("config.toml")))

    def facts(self) -> dict[str, object]:
        """Dataset name, preset, notes."""
        found: dict[str, object] = json.loads(self.file("data.json").read_text(encoding="utf-8"))
        return found

    def dataset(self) -> Dataset:
        """The data the run was trained on, with its splits; graphs are mapped, not loaded."""
        facts = self.facts()
        entities, relations = _vocabulary(self.file("entities.txt")), _vocabulary(self.file("relations.txt"))
        graph = KnowledgeGraph.open(self.file("graph.safetensors"))
        arrays = {
            name: np.asarray(array, dtype=np.int32)
            for name, array in map_arrays(self.file("splits.safetensors")).items()
        }
        valid, test = arrays["valid"], arrays["test"]
        inductive = bool(facts["inductive"])
        before_test = KnowledgeGraph.build(np.concatenate([graph.triples, valid]), len(entities), len(relations))
        if inductive:
            new = _vocabulary(self.file("new_entities.txt"))
            new_known = KnowledgeGraph.build(arrays["new_known"], len(new), len(relations))
            task = Split("test", KnowledgeGraph.open(self.file("new_graph.safetensors")), test, new_known, new)
        else:
            truths = np.concatenate([graph.triples, valid, test])
            known = KnowledgeGraph.build(truths, len(entities), len(relations))
            task = Split("test", graph, test, known, entities)
        train = Split("train", graph, graph.triples, graph, entities)
        notes = facts["notes"]
        assert isinstance(notes, list)
        validation = Split("valid", graph, valid, before_test, entities)
        return Dataset(str(facts["dataset"]), relations, train, validation, task, tuple(notes))

    def log(self, entry: dict[str, float]) -> None:
        """Append one line to log.jsonl."""
        with self.file("log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _lines(vocabulary: Vocabulary) -> str:
    """One label a line, with its display name after a tab where it has one."""
    names = vocabulary.names
    return "".join(
        _escaped(label) + (f"\t{_escaped(names[label])}" if label in names else "") + "\n"
        for label in vocabulary.labels()
    )


def _vocabulary(path: Path) -> Vocabulary:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    labels = [_restored(row[0]) for row in rows]
    names = {label: _restored(row[1]) for label, row in zip(labels, rows, strict=True) if len(row) > 1}
    return Vocabulary(labels, names)


_ESCAPES: Iterable[tuple[str, str]] = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))


def _escaped(text: str) -> str:
    for plain, code in _ESCAPES:
        text = text.replace(plain, code)
    return text


def _restored(text: str) -> str:
    if "\\" not in text:
        return text
    pieces = text.split("\\\\")
    for plain, code in list(_ESCAPES)[1:]:
        pieces = [piece.replace(code, plain) for piece in pieces]
    return "\\".join(pieces)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
