"""`read`: whatever the user calls DATA, a benchmark's name, a folder, a file or an object in memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from kgcf.data import registry
from kgcf.data.dataset import Dataset, Split
from kgcf.data.manifest import Benchmark
from kgcf.data.names import read_names
from kgcf.data.reader import read_frame, read_path
from kgcf.data.reading_options import Reading
from kgcf.data.recognition import recognise
from kgcf.data.splitting import SplitSettings
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import unknown_name


def read(
    source: Any,  # noqa: ANN401
    *,
    names: str | Path | None = None,
    split: SplitSettings | None = None,
    header: bool | None = None,
    comment: str | None = None,
    strip: bool = False,
) -> Dataset:
    """Read a dataset.

    `source` is the name of a benchmark (`kgcf datasets ls`), a folder, a file, a pandas or polars
    frame, an Arrow table, an array [E, 3] or an iterable of (head, relation, tail[, weight]). A name
    of a benchmark always means the benchmark; write ./name for a folder of the same name.
    `names` is a file of display names, `split` says how a single file is split, `header` whether the
    first line of a text file is a header (detected if not given), `comment` what the lines to skip in it
    begin with, `strip` whether to remove spaces around labels.
    """
    data = _read(source, split, Reading(header, comment, strip))
    return data if names is None else with_names(data, Path(names))


def with_names(data: Dataset, path: Path) -> Dataset:
    """Attach the display names of a `label<TAB>name` file to entities and relations."""
    names = read_names(path)
    entities = data.entities.with_names(names)
    train, valid, test = (_renamed(split, data, entities, names) for split in data.splits)
    relations = data.relations.with_names(names)
    named = len(entities.names) + len(relations.names)
    note = f"{path.name}: names for {named:,} of {len(entities) + len(relations):,} entities and relations"
    return replace(data, relations=relations, train=train, valid=valid, test=test).with_notes(note)


def _read(source: Any, split: SplitSettings | None, reading: Reading) -> Dataset:  # noqa: ANN401
    if not isinstance(source, str | Path):
        return read_frame(source, split=split, reading=reading)
    if isinstance(source, str) and registry.is_known(source):
        return registry.load(source)
    path = Path(source)
    if path.exists():
        data, known = read_path(path, split, reading), recognise(path)
        return data if known is None else replace(data, benchmark=known.name).with_notes(_is_benchmark(path, known))
    raise unknown_name("file, folder or benchmark", str(source), registry.names(), listed=0)


def _is_benchmark(path: Path, known: Benchmark) -> str:
    return f"{path}: these files are the benchmark {known.name}, by their sha256"


def _renamed(split: Split, data: Dataset, entities: Vocabulary, names: dict[str, str]) -> Split:
    shared = split.entities is data.entities
    return Split(
        split.name, split.observed, split.queries, split.known, entities if shared else split.entities.with_names(names)
    )
