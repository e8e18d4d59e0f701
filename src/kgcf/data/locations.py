"""Where the files of a benchmark may lie, in the order in which we look; and whether they are the right ones.

1. the folder that `$KGCF_DATA` names;
2. the user cache: `$KGCF_CACHE`, else kgcf's folder where the system keeps caches; below it, `data`.

In each of them a graph is a folder of its own with train.txt, valid.txt and test.txt, plain or gzipped.
"""

import hashlib
import os
import zlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import platformdirs

from kgcf.data.manifest import SPLIT_FILES, FileFacts, GraphFacts, benchmark
from kgcf.data.opening import open_binary
from kgcf.errors import DataError

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Location:
    """A folder of graphs, and what to call it."""

    title: str
    path: Path


def cache_folder() -> Path:
    """The folder that kgcf may fill and the user may delete."""
    if chosen := os.environ.get("KGCF_CACHE"):
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("kgcf", appauthor=False)


def cache_location() -> Location:
    """Where downloads go."""
    return Location("cache", cache_folder() / "data")


def list_locations(data_root: str | Path | None = None) -> list[Location]:
    """The places to look at, in order; a given `data_root` is the only one."""
    if data_root is not None:
        return [Location(str(data_root), Path(data_root).expanduser())]
    if chosen := os.environ.get("KGCF_DATA"):
        return [Location("$KGCF_DATA", Path(chosen).expanduser()), cache_location()]
    return [cache_location()]


def locate(name: str, data_root: str | Path | None = None) -> Location | None:
    """Where all graphs of a benchmark lie, or None if they would have to be fetched."""
    found = benchmark(name)
    if found.embedded:
        return Location("package", package_folder(found.graphs[0]).parent)
    at = [find_graph(facts, list_locations(data_root)) for facts in found.graphs]
    return None if at[0] is None or None in at else at[0][0]


def package_folder(graph: GraphFacts) -> Path:
    """The folder of a graph that ships in the package."""
    return Path(str(resources.files("kgcf.data").joinpath(graph.name)))


def find_graph(graph: GraphFacts, among: list[Location]) -> tuple[Location, Path] | None:
    """The first place that has all three splits of a graph, and the graph's folder there."""
    for location in among:
        folder = location.path / graph.name
        if all(find_file(folder, name) for name in SPLIT_FILES):
            return location, folder
    return None


def find_file(folder: Path, name: str) -> Path | None:
    """A file of a graph, plain or gzipped."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def check_file(path: Path, facts: FileFacts, graph: str) -> None:
    """Refuse a file whose uncompressed content is not the one we know."""
    found, size = digest(path)
    if found != facts.sha256:
        raise DataError(
            f"{path} is not the file that kgcf knows as part of {graph}: expected sha256 {facts.sha256} "
            f"({facts.size:,} bytes uncompressed), found {found} ({size:,} bytes). "
            "Replace it, or give its folder as a path to use it as data of your own."
        )


def digest(path: Path) -> tuple[str, int]:
    """sha256 and size of a file's uncompressed content."""
    summed, size = hashlib.sha256(), 0
    try:
        with open_binary(path) as stream:
            while chunk := stream.read(_CHUNK):
                summed.update(chunk)
                size += len(chunk)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut short: {error}. Replace it.") from error
    return summed.hexdigest(), size
