"""Which files of a folder hold which part of a dataset."""

from dataclasses import dataclass
from pathlib import Path

from kgcf.errors import DataError

SUFFIXES = (".txt", ".tsv", ".csv", ".parquet", ".nt", ".ttl")
_STEMS = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "dev"),
    "test": ("test", "testing"),
    "facts": ("facts",),
}
_NAME_FILES = {
    "entities": ("entity_names.tsv", "entity_names.txt"),
    "relations": ("relation_names.tsv", "relation_names.txt"),
}


@dataclass(frozen=True)
class Folder:
    """The parts found in a folder; absent ones are None."""

    path: Path
    train: Path
    valid: Path | None
    test: Path | None
    facts: Path | None  # NeuralLP style: belongs to train
    entities: Path | None  # entities.dict
    relations: Path | None  # relations.dict
    entity_names: Path | None
    relation_names: Path | None

    @classmethod
    def of_nothing_but(cls, path: Path) -> "Folder":
        """A name without dictionaries and name files, for triples that are in no folder."""
        return cls(path, path, None, None, None, None, None, None, None)

    @property
    def splits(self) -> tuple[tuple[str, Path | None], ...]:
        """The files of train, valid and test."""
        return ("train", self.train), ("valid", self.valid), ("test", self.test)


def find_parts(path: Path) -> Folder:
    """Look for train, valid and test files, dictionaries and name files."""
    parts = {part: _first(path, [stem + s for stem in stems for s in SUFFIXES]) for part, stems in _STEMS.items()}
    train = parts["train"]
    if train is None:
        found = sorted(entry.name for entry in path.iterdir())[:8]
        listing = ", ".join(found) if found else "nothing"
        raise DataError(
            f"{path} is a folder without a train file. Expected train.txt, valid.txt and test.txt "
            f"(also .tsv, .csv, .parquet, .nt, .ttl; text may be gzipped); found {listing}."
        )
    return Folder(
        path=path,
        train=train,
        valid=parts["valid"],
        test=parts["test"],
        facts=parts["facts"],
        entities=_first(path, ["entities.dict"]),
        relations=_first(path, ["relations.dict"]),
        entity_names=_first(path, list(_NAME_FILES["entities"])),
        relation_names=_first(path, list(_NAME_FILES["relations"])),
    )


def inductive_partner(path: Path) -> Path | None:
    """The folder NAME_ind beside NAME, as GraIL's inductive pairs are laid out."""
    resolved = path.resolve()
    partner = resolved.with_name(resolved.name + "_ind")
    return partner if partner.is_dir() else None


def _first(folder: Path, names: list[str]) -> Path | None:
    """The one file with one of the names, plain or gzipped, in whatever case; two candidates are an error."""
    wanted = [name + end for name in names for end in ("", ".gz")]
    found = sorted(
        (entry for entry in folder.iterdir() if entry.name.lower() in wanted and entry.is_file()),
        key=lambda entry: (wanted.index(entry.name.lower()), entry.name),
    )
    if len(found) > 1:
        raise DataError(
            f"{folder} has both {found[0].name} and {found[1].name}; keep one, so that it is clear which to read."
        )
    return found[0] if found else None
