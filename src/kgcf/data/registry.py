"""Benchmarks by name: found or fetched, checked against counts and checksums, with readable names attached."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

from kgcf.data.dataset import Dataset, Split
from kgcf.data.download import DownloadError, showing_bytes
from kgcf.data.folders import find_parts
from kgcf.data.locations import (
    Location,
    cache_location,
    check_file,
    find_file,
    find_graph,
    list_locations,
    locate,
    package_folder,
)
from kgcf.data.manifest import Benchmark, GraphFacts, benchmark, benchmarks, graph, is_known, names
from kgcf.data.names import read_names
from kgcf.data.reader import read_folder, read_inductive
from kgcf.data.recipes import obtain
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError
from kgcf.storage import replacing

__all__ = ["at_hand", "benchmark", "benchmarks", "find_extra", "get", "is_known", "load", "locate", "names"]


def load(name: str, *, data_root: str | Path | None = None) -> Dataset:
    """Load a benchmark by name: `wn18rr`, `wn18rr:v1`, `world`, …

    Its files are looked up as `places.py` says (or only in `data_root`, where that is given), then
    fetched from their public home into the user cache. `KGCF_OFFLINE=1` forbids fetching.
    """
    found = benchmark(name)
    folders = [_folder_of(facts, found, data_root) for facts in found.graphs]
    for facts, folder in zip(found.graphs, folders, strict=True):
        check_graph(facts, folder)
    data = read_inductive(folders[0], folders[1]) if found.inductive else read_folder(find_parts(folders[0]))
    _check_counts(found, data, folders)
    notes = tuple(note for note in data.notes if not note.startswith(("train.", "valid.", "test.")))
    return _with_parent_names(replace(data, name=found.name, notes=notes, benchmark=found.name), found, data_root)


def at_hand(*wanted: str) -> bool:
    """Whether the files of these benchmarks (all of them, if none is named) are on this machine."""
    return all(locate(name) is not None for name in wanted or names())


def find_extra(name: str, file: str, data_root: str | Path | None = None) -> Path | None:
    """A further file of a benchmark, such as drugmechdb's `mechanisms.tsv`, where it is at hand; checked."""
    facts = benchmark(name).graphs[0]
    if file not in facts.files:
        raise DataError(f"{name} has no file {file}; it has {', '.join(facts.files)}.")
    return _find_checked(facts, file, data_root)


def get(name: str, to: Path | None = None) -> tuple[list[Path], list[str]]:
    """Copy or download a benchmark, and the graph whose names it uses, into the cache (or the folder `to`).

    Returns the folders, and notes about name files that could not be had.
    """
    found = benchmark(name)
    if found.embedded:
        return [package_folder(found.graphs[0])], ["world ships in the package; there is nothing to fetch"]
    root = cache_location().path if to is None else to
    wanted = [*found.graphs, *([graph(found.names_from)] if found.names_from else [])]
    notes: list[str] = []
    for facts in wanted:
        _copy(facts, root)
        notes += _obtain(facts, root)
    return [root / facts.name for facts in wanted], notes


def check_graph(facts: GraphFacts, folder: Path) -> None:
    """Refuse a folder with a file whose content is not the one we know; absent name files are fine."""
    for name, expected in facts.files.items():
        path = find_file(folder, name)
        if path is not None and name != "mechanisms.tsv":
            check_file(path, expected, facts.name)


def _find_checked(facts: GraphFacts, file: str, data_root: str | Path | None) -> Path | None:
    """One file of a graph in the first place that has it."""
    for location in list_locations(data_root):
        path = find_file(location.path / facts.name, file)
        if path is not None:
            check_file(path, facts.files[file], facts.name)
            return path
    return None


def _folder_of(facts: GraphFacts, found: Benchmark, data_root: str | Path | None) -> Path:
    if found.embedded:
        return package_folder(facts)
    looked = list_locations(data_root)
    if (at := find_graph(facts, looked)) is not None:
        return at[1]
    if data_root is None and facts.download and os.environ.get("KGCF_OFFLINE", "0") in ("", "0"):
        _obtain(facts, cache_location().path)
        return cache_location().path / facts.name
    raise DataError(_not_at_hand(facts, looked))


def _obtain(facts: GraphFacts, root: Path) -> list[str]:
    """Fetch what is missing, with progress; where that fails, say where the files can be put by hand."""
    try:
        with showing_bytes(facts.name) as advance:
            return obtain(facts, root, advance)
    except DownloadError as error:
        raise DownloadError(f"{error} {_not_at_hand(facts, list_locations())}") from error


def _not_at_hand(facts: GraphFacts, looked: list[Location]) -> str:
    paths = list(dict.fromkeys(str(location.path / facts.name) for location in looked))
    return (
        f"The files of {facts.name} are not at hand. Put train.txt, valid.txt and test.txt (plain or .gz) into "
        f"{' or '.join(paths)}, or set KGCF_DATA to the folder that holds the folder {facts.name}. "
        f"They come from {facts.source}."
    )


def _copy(facts: GraphFacts, root: Path) -> None:
    """Copy what is at hand elsewhere and right; what is already in `root` stays."""
    for location in list_locations():
        for name, expected in facts.files.items():
            source = find_file(location.path / facts.name, name)
            target_folder = root / facts.name
            if source is None or find_file(target_folder, name) is not None or location.path == root:
                continue
            check_file(source, expected, facts.name)
            with replacing(target_folder / source.name) as temporary:
                shutil.copyfile(source, temporary)


def _check_counts(found: Benchmark, data: Dataset, folders: list[Path]) -> None:
    """Refuse a dataset that reads with other counts than the published ones."""
    first, last = found.graphs[0], found.graphs[-1]
    expected = {
        "entities": (first.entities, len(data.entities)),
        "relations": (first.relations, len(data.relations)),
        "train triples": (first.train - first.repeated_in_train, len(data.graph)),
        "valid triples": (first.valid, len(data.valid)),
        "test triples": (last.test, len(data.test)),
        "entities of the test graph": (last.entities, len(data.test.entities)),
    }
    for what, (known, seen) in expected.items():
        if known != seen:
            raise DataError(f"{found.name} from {folders[-1]}: {known:,} {what} expected, {seen:,} found.")


def _with_parent_names(data: Dataset, found: Benchmark, data_root: str | Path | None) -> Dataset:
    """Attach the name files of the graph that this one was cut from, where they are at hand."""
    if found.names_from is None:
        return data
    parent = graph(found.names_from)
    known: dict[str, dict[str, str]] = {}
    for file in ("entity_names.tsv", "relation_names.tsv"):
        path = _find_checked(parent, file, data_root) if file in parent.files else None
        known[file] = {} if path is None else read_names(path)
    named: dict[int, Vocabulary] = {}

    def renamed(split: Split) -> Split:
        key = id(split.entities)
        named.setdefault(key, split.entities.with_names(known["entity_names.tsv"]))
        return replace(split, entities=named[key])

    train, valid, test = (renamed(split) for split in data.splits)
    relations = data.relations.with_names(known["relation_names.tsv"])
    return replace(data, relations=relations, train=train, valid=valid, test=test)
