"""Training on a busy machine: queries per second alone and beside processes that only count, in one process and in two.

Run: python benchmarks/busy.py [DATA] [--beside 2] [--epochs 2] [--output results/busy.json]

"spinning" is how it would be if OpenMP's idle threads did not sleep (`OMP_WAIT_POLICY=ACTIVE` and a thread per core),
as libraries have it by default. Every figure is the last epoch's, by the clock; nothing else should run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgcf.storage import write_json
from machine import describe_protocol

SPINNING = {"OMP_WAIT_POLICY": "ACTIVE", "OMP_NUM_THREADS": str(os.cpu_count())}


def train(data: str, epochs: int, processes: int, environment: dict[str, str]) -> float:
    """Queries per second of the last epoch."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")}
    launcher = ["-m"] if processes == 1 else ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", "-m"]
    settings = (f"training.epochs={epochs}", "objective.negatives=32", "objective.answers=1")
    with tempfile.TemporaryDirectory(prefix="kgcf-benchmark-") as scratch:
        run = Path(scratch) / "run"
        command = [sys.executable, *launcher, "kgcf", "train", data, "--preset", "nbfnet", "--output", str(run)]
        command += [part for setting in settings for part in ("--set", setting)]
        subprocess.run(command, env=inherited | environment, check=True, capture_output=True)
        entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return float([entry for entry in entries if "epoch" in entry][-1]["queries_per_second"])


@contextmanager
def counting(processes: int) -> Iterator[None]:
    """So many processes that keep a core busy each."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def main() -> None:
    """Measure all eight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="wn18rr:v1")
    parser.add_argument("--beside", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found: dict[str, float] = {}
    for processes in (1, 2):
        for waiting, environment in (("sleeping", {}), ("spinning", SPINNING)):
            for others in (0, given.beside):
                with counting(others):
                    name = f"{processes} training, {waiting}, beside {others}"
                    found[name] = train(given.data, given.epochs, processes, environment)
                print(name, f"{found[name]:,.0f} queries/s", flush=True)
    if given.output is not None:
        protocol = describe_protocol(0) | {"times": "last epoch, by the clock", "threads": "as kgcf chooses"}
        write_json(given.output, {"queries per second": found, "data": given.data, "protocol": protocol})


if __name__ == "__main__":
    main()
