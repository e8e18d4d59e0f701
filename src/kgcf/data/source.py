"""`read`: whatever the user calls DATA, a benchmark's name, a folder, a file or an object in memory."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgcf.data import registry
from kgcf.data.dataset import Dataset, Split
from kgcf.data.manifest import Benchmark
from kgcf.data.names import read_names
from kgcf.data.reader import read_frame, read_path, read_splits
from kgcf.data.reading_options import Reading
from kgcf.data.recognition import recognise
from kgcf.data.splitting import SplitSettings
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError, SettingsError, unknown_name


def read(
    source: Any = None,  # noqa: ANN401
    *,
    train: Any = None,  # noqa: ANN401
    valid: Any = None,  # noqa: ANN401
    test: Any = None,  # noqa: ANN401
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
    Instead of a source, `train`, `valid` and `test` are splits of your own, each a file or an object as above.
    `names` is a file of display names, `split` says how a single file is split, `header` whether the
    first line of a text file is a header (detected if not given), `comment` what the lines to skip in it
    begin with, `strip` whether to remove spaces around labels.
    """
    reading = Reading(header, comment, strip)
    parts = {name: part for name, part in (("train", train), ("valid", valid), ("test", test)) if part is not None}
    _check_source(source, parts, split)
    data = read_splits(parts, reading) if source is None else _read(source, split, reading)
    return data if names is None else with_names(data, Path(names))


def _check_source(source: Any, parts: Mapping[str, Any], split: SplitSettings | None) -> None:  # noqa: ANN401
    """Refuse nothing, and what does not go together."""
    kinds = "a benchmark's name, a folder, a file, a frame, an array or a list of (head, relation, tail)"
    if source is None and not parts:
        raise DataError(f"There is nothing to read: give {kinds}, or train=, valid= and test= of your own.")
    if source is not None and parts:
        raise SettingsError(f"Give either one source or splits of your own ({'=, '.join(parts)}=), not both.")
    if source is None and "train" not in parts:
        raise SettingsError(f"There is {'= and '.join(parts)}= but no train=: a model needs triples to learn from.")
    if parts and split is not None:
        raise SettingsError("split= says how one table is split; train=, valid= and test= are taken as they are.")


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
