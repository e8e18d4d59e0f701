"""Is this folder a benchmark? Known by the sha256 of its three splits (of both graphs of a pair), never by its name."""

from pathlib import Path

from kgcf.data.folders import find_parts, inductive_partner
from kgcf.data.locations import digest
from kgcf.data.manifest import Benchmark, GraphFacts, benchmarks


def recognise(path: Path) -> Benchmark | None:
    """The benchmark whose files a folder (and its partner NAME_ind) holds, plain or gzipped.

    The smallest file is looked at first, so that a large graph of the user's own is not read twice.
    """
    if not path.is_dir():
        return None
    partner = inductive_partner(path)
    folders = [path] if partner is None else [path, partner]
    possible = [entry for entry in benchmarks().values() if len(entry.graphs) == len(folders)]
    for position, folder in enumerate(folders):
        fitting = _fitting(folder, [entry.graphs[position] for entry in possible])
        possible = [entry for entry in possible if entry.graphs[position].name in fitting]
    return possible[0] if possible else None


def _fitting(folder: Path, graphs: list[GraphFacts]) -> set[str]:
    """The names of the graphs whose train, valid and test a folder has."""
    parts = find_parts(folder)
    files = [(f"{part}.txt", path) for part, path in parts.splits if path is not None]
    if len(files) < 3 or parts.facts is not None:
        return set()
    for name, path in sorted(files, key=lambda file: file[1].stat().st_size):
        if not graphs:
            break
        found = digest(path)[0]
        graphs = [graph for graph in graphs if graph.files[name].sha256 == found]
    return {graph.name for graph in graphs}
