"""How long reading takes and how much memory it needs: FB15k-237 from text, and a generated file of 20 million triples.

Run: python benchmarks/loading.py [--triples 20000000] [--output results.json]
Each measurement runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from kgcf.machine.provenance import provenance


def generate(path: Path, count: int) -> None:
    """Write a TSV with Zipf-like entity frequencies: count triples, count / 5 entities, 200 relations."""
    generator = np.random.default_rng(0)
    entities = max(count // 5, 2)
    with path.open("wb") as file:
        for first in range(0, count, 1_000_000):
            rows = min(1_000_000, count - first)
            columns = [_labels("entity/", generator, entities, rows), _labels("relation/", generator, 200, rows)]
            columns.append(_labels("entity/", generator, entities, rows))
            table = pa.table(columns, names=["h", "r", "t"])
            options = pacsv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
            pacsv.write_csv(table, file, options)


def _labels(prefix: str, generator: np.random.Generator, kinds: int, rows: int) -> pa.Array:
    ids = (generator.random(rows) ** 2 * kinds).astype(np.int64)  # low ids are frequent
    return pa.array(np.char.add(prefix, ids.astype(str)).astype(object), type=pa.string())


def measure(path: str) -> None:
    """In the child process: read one file into a graph and print time and peak memory."""
    from kgcf.data.encoding import encode
    from kgcf.data.graph import KnowledgeGraph
    from kgcf.data.reader import read_table

    KnowledgeGraph.build([[0, 0, 0]], 1, 1).tails(0, 0)  # compile first
    started = time.perf_counter()
    table = read_table(Path(path))
    parsed = time.perf_counter()
    encoded = encode([table])
    count = len(table)
    del table
    numbered = time.perf_counter()
    graph = KnowledgeGraph.build(encoded.triples[0], len(encoded.entities), len(encoded.relations))
    done = time.perf_counter()
    seconds = {
        "parse": parsed - started,
        "number": numbered - parsed,
        "index": done - numbered,
        "total": done - started,
    }
    found = {
        "lines": count,
        "triples": len(graph),
        "entities": graph.entity_count,
        "file_mb": round(Path(path).stat().st_size / 1e6, 1),
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }
    print(json.dumps(found))


def in_child(path: Path) -> dict[str, object]:
    """Measure in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", str(path)], capture_output=True, text=True, check=True
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure both files and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=20_000_000)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    from kgcf.data import registry

    results: dict[str, object] = {}
    place = registry.locate("fb15k-237")
    if place is None:
        sys.exit("fb15k-237 is not at hand: set KGCF_DATA to the folder that has it.")
    results["fb15k-237 train, gzipped text"] = in_child(place.path / "fb15k-237" / "train.txt.gz")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "generated.tsv"
        generate(path, arguments.triples)
        results[f"generated, {arguments.triples:,} triples, plain text"] = in_child(path)
    for name, found in results.items():
        print(name, json.dumps(found))
    if arguments.output:
        arguments.output.write_text(json.dumps({"results": results, "protocol": provenance()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
