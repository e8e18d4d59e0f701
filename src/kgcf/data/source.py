"""`read`: whatever the user calls DATA, a benchmark's name, a folder, a file or an object in memory."""

from pathlib import Path
from typing import Any

from kgcf.data import registry
from kgcf.data.dataset import Dataset, Split
from kgcf.data.names import read_names
from kgcf.data.reader import read_frame, read_path
from kgcf.data.splitting import SplitSettings
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import unknown_name


def read(
    source: Any,  # noqa: ANN401
    *,
    names: str | Path | None = None,
    split: SplitSettings | None = None,
    header: bool | None = None,
) -> Dataset:
    """Read a dataset.

    `source` is the name of a benchmark (`kgcf datasets ls`), a folder, a file, a pandas or polars
    frame, an Arrow table, an array [E, 3] or an iterable of (head, relation, tail[, weight]). A name
    of a benchmark always means the benchmark; write ./name for a folder of the same name.
    `names` is a file of display names, `split` says how a single file is split, `header` whether the
    first line of a text file is a header (detected if not given).
    """
    data = _read(source, split, header)
    return data if names is None else with_names(data, Path(names))


def with_names(data: Dataset, path: Path) -> Dataset:
    """Attach the display names of a `label<TAB>name` file to entities and relations."""
    names = read_names(path)
    entities = data.entities.with_names(names)
    train, valid, test = (_renamed(split, data, entities, names) for split in data.splits)
    relations = data.relations.with_names(names)
    named = len(entities.names) + len(relations.names)
    note = f"{path.name}: names for {named:,} of {len(entities) + len(relations):,} entities and relations"
    return Dataset(data.name, relations, train, valid, test, (*data.notes, note))


def _read(source: Any, split: SplitSettings | None, header: bool | None) -> Dataset:  # noqa: ANN401
    if not isinstance(source, str | Path):
        return read_frame(source, split=split)
    if isinstance(source, str) and registry.is_known(source):
        return registry.load(source)
    path = Path(source)
    if path.exists():
        return read_path(path, split, header)
    raise unknown_name("file, folder or benchmark", str(source), registry.names(), listed=0)


def _renamed(split: Split, data: Dataset, entities: Vocabulary, names: dict[str, str]) -> Split:
    shared = split.entities is data.entities
    return Split(
        split.name, split.observed, split.queries, split.known, entities if shared else split.entities.with_names(names)
    )
