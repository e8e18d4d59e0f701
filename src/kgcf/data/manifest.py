"""What kgcf knows about every benchmark without its files: counts, checksums, licences, public homes, names."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from kgcf.errors import unknown_name

SPLIT_FILES = ("train.txt", "valid.txt", "test.txt")


@dataclass(frozen=True)
class FileFacts:
    """One file, uncompressed."""

    sha256: str
    lines: int
    size: int  # bytes


@dataclass(frozen=True)
class GraphFacts:
    """One folder with train, valid and test, and perhaps name files."""

    name: str  # of the folder
    entities: int
    relations: int
    train: int  # lines, repeats included
    valid: int
    test: int
    repeated_in_train: int
    files: Mapping[str, FileFacts] = field(repr=False)
    source: str = field(repr=False)
    licence: str = field(repr=False)
    download: tuple[Mapping[str, Any], ...] = field(repr=False)  # steps, in the order to try; see recipes.py


@dataclass(frozen=True)
class Benchmark:
    """A name that `load` accepts: one graph, or an inductive pair (train graph, new graph)."""

    name: str
    graphs: tuple[GraphFacts, ...]
    aliases: tuple[str, ...]
    licence: str  # in a word or two
    about: str
    names_from: str | None  # the graph whose name files serve this one

    @property
    def inductive(self) -> bool:
        """Whether the test task asks about a second graph."""
        return len(self.graphs) == 2

    @property
    def embedded(self) -> bool:
        """Whether the files ship in the package."""
        return self.name == "world"

    @property
    def downloadable(self) -> bool:
        """Whether every graph has a public home that we can fetch it from."""
        return all(graph.download for graph in self.graphs)


@cache
def benchmarks() -> Mapping[str, Benchmark]:
    """Every benchmark by its name."""
    text = resources.files("kgcf.data").joinpath("benchmarks.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    graphs = {name: _graph(name, entry) for name, entry in manifest["graphs"].items()}
    return {
        name: Benchmark(
            name,
            tuple(graphs[graph] for graph in entry["graphs"]),
            tuple(entry["aliases"]),
            entry["licence"],
            entry["about"],
            entry["names_from"],
        )
        for name, entry in manifest["benchmarks"].items()
    }


def names() -> list[str]:
    """The names of all benchmarks, as `load` takes them."""
    return list(benchmarks())


def is_known(name: str) -> bool:
    """Whether a text names a benchmark; case and the signs - _ : do not matter."""
    return _plain(name) in _by_plain_name()


def benchmark(name: str) -> Benchmark:
    """The benchmark of that name or alias; an unknown name is an error with suggestions."""
    found = _by_plain_name().get(_plain(name))
    if found is None:
        raise unknown_name("benchmark", name, names(), listed=len(benchmarks()))
    return benchmarks()[found]


def graph(folder: str) -> GraphFacts:
    """The graph that is kept in a folder of that name."""
    return next(g for b in benchmarks().values() for g in b.graphs if g.name == folder)


@cache
def _by_plain_name() -> Mapping[str, str]:
    table = {_plain(alias): b.name for b in benchmarks().values() for alias in (*b.aliases, b.graphs[0].name)}
    return table | {_plain(name): name for name in benchmarks()}


def _plain(name: str) -> str:
    return re.sub(r"[-_: ]", "", name.lower())


def _graph(name: str, entry: Mapping[str, Any]) -> GraphFacts:
    files = {file: FileFacts(facts["sha256"], facts["lines"], facts["bytes"]) for file, facts in entry["files"].items()}
    return GraphFacts(
        name=name,
        files=files,
        source=entry["source"],
        licence=entry["licence"],
        download=tuple(entry["download"]),
        **entry["counts"],
    )
