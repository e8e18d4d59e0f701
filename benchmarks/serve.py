"""How quick the explorer is: one reader, ten readers at once, memory; on the runs that are given.

Run: python benchmarks/serve.py RUN [RUN …] [--questions 40] [--output results/serve.json]
The server is a process of its own, as `kgcf serve` starts it. Beside the clock stands the server's processor time per
request, which says the same on a busy machine.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from kgcf.machine.provenance import provenance
from kgcf.runs.folder import RunFolder
from kgcf.screen import print_json
from kgcf.storage import write_json

USERS = 10


@dataclass
class Server:
    """A running server."""

    process: int
    port: int
    ready: float  # seconds from its start

    def processor_seconds(self) -> float:
        """What it has computed so far."""
        fields = Path(f"/proc/{self.process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_megabytes(self) -> float:
        """Its largest resident memory."""
        status = Path(f"/proc/{self.process}/status").read_text(encoding="ascii")
        found = re.search(r"VmHWM:\s+(\d+)", status)
        assert found is not None
        return int(found[1]) / 1024


@dataclass
class Timed:
    """Requests of one kind."""

    seconds: list[float] = field(default_factory=list)
    processor: float = 0.0
    refused: Counter[int] = field(default_factory=Counter)  # by status

    def summary(self) -> dict[str, Any]:
        """Milliseconds."""
        ordered = sorted(self.seconds)
        return {
            "requests": len(ordered),
            "errors": self.refused.total(),
            "statuses": dict(self.refused),
            "median_ms": round(1000 * statistics.median(ordered), 1),
            "p95_ms": round(1000 * ordered[int(0.95 * (len(ordered) - 1))], 1),
            "processor_ms": round(1000 * self.processor / len(ordered), 1),
        }


@contextmanager
def serving(runs: Sequence[Path]) -> Iterator[Server]:
    """Start the server, wait until it says that it is ready, stop it at the end."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="kgcf-serve-") as reviews:
        command = [sys.executable, "-m", "kgcf", "serve", *map(str, runs), "--port", "0", "--reviews", reviews]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            found = None
            while found is None:
                line = process.stderr.readline()
                assert line, "the server did not start"
                found = re.search(r"Ready after .*:(\d+)/", line)
            yield Server(process.pid, int(found[1]), time.perf_counter() - started)
        finally:
            process.terminate()
            process.wait()
            process.stderr.close()


def draw_requests(run: Path, count: int, seed: int = 0) -> dict[str, list[str]]:
    """Addresses by kind, about triples of the test split that are drawn at random."""
    data = RunFolder(run).dataset()
    rows = np.random.default_rng(seed).permutation(data.test.queries)[:count].tolist()
    base, found = f"/api/runs/{run.resolve().name}", dict[str, list[str]]()
    for h, r, t in rows:
        head, relation, tail = data.test.entities.label(h), data.relations.label(r), data.test.entities.label(t)
        triple = {"head": head, "relation": relation, "tail": tail}
        asked = {
            "search": f"{base}/search?{urlencode({'q': data.test.entities.display(h)[:3]})}",
            "answer": f"{base}/question?{urlencode({'head': head, 'relation': relation})}",
            "explanation": f"{base}/answer?{urlencode(triple)}",
            "explanation page": f"{base.removeprefix('/api')}/answer?{urlencode(triple)}",
            "missing links": f"{base}/missing?{urlencode({'name': head})}",
        }
        for kind, address in asked.items():
            found.setdefault(kind, []).append(address)
    return found


def ask(server: Server, addresses: Sequence[str]) -> Timed:
    """One reader, one request after another."""
    timed, connection = Timed(), HTTPConnection("127.0.0.1", server.port, timeout=120)
    before = server.processor_seconds()
    for address in addresses:
        started = time.perf_counter()
        connection.request("GET", address)
        answer = connection.getresponse()
        answer.read()
        timed.seconds.append(time.perf_counter() - started)
        timed.refused.update([answer.status] if answer.status != 200 else [])
    timed.processor = server.processor_seconds() - before
    connection.close()
    return timed


def ask_at_once(server: Server, addresses: Sequence[str]) -> Timed:
    """Ten readers, each with a connection of its own and a share of the requests."""
    parts: list[Timed] = []
    shares = [addresses[user::USERS] for user in range(USERS)]
    threads = [threading.Thread(target=lambda s=share: parts.append(ask(server, s))) for share in shares if share]
    before = server.processor_seconds()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    joined = Timed([s for part in parts for s in part.seconds], 0.0, sum((part.refused for part in parts), Counter()))
    joined.processor = server.processor_seconds() - before
    return joined


def measure(run: Path, count: int) -> dict[str, object]:
    """All figures of one run."""
    asked = draw_requests(run, count)
    with serving([run]) as server:
        first = ask(server, asked["answer"][:1])
        alone = {kind: ask(server, addresses).summary() for kind, addresses in asked.items()}
        mixed = [address for group in zip(*asked.values(), strict=True) for address in group]
        together = ask_at_once(server, mixed).summary()
        memory = server.peak_megabytes()
        ready = server.ready
    return {
        "ready_seconds": round(ready, 1),
        "first_answer_ms": first.summary()["median_ms"],
        "first_answer_processor_ms": first.summary()["processor_ms"],
        "one reader": alone,
        f"{USERS} readers": together,
        "peak_megabytes": round(memory),
    }


def main() -> None:
    """Measure the runs and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    found: dict[str, object] = {run.resolve().name: measure(run, arguments.questions) for run in arguments.runs}
    result = {"runs": found, "load": os.getloadavg(), "protocol": provenance()}
    if arguments.output is not None:
        write_json(arguments.output, result)
    print_json(result)


if __name__ == "__main__":
    main()
