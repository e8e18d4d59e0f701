"""Paths, memory and both on validation: for a finished run, and by the share of the time that memory takes.

Run: python benchmarks/paths_and_memory.py weigh RUN [--try memory.rank=50] [--try memory.rank=200 …] [--output FILE]
     python benchmarks/paths_and_memory.py shares DATA --seconds 600 [--share 0.1 --share 0.25 …] [--set …] [--output …]
     python benchmarks/paths_and_memory.py speed DATA [--rank 200] [--output …]

`weigh` trains a memory beside the paths of a run for every --try (several changes in one are joined by commas), and
weighs both by cross-validation over validation questions; test is never looked at. `shares` divides a number of
seconds: paths get a budget of queries by their own speed, measured first, memory the rank that fits its share. Figures
are added to those that the output file has. Times are wall clock: only on an idle machine are they promises.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import kgcf
from kgcf.config import configure
from kgcf.data.source import read
from kgcf.memory.cost import estimate_epoch_seconds, fit_to_time
from kgcf.memory.settings import MemorySettings
from kgcf.prediction.blending.blend import FILE as BLEND
from kgcf.prediction.blending.blend import Blend, read_blend
from kgcf.runs.folder import RunFolder
from kgcf.runs.memory_stage import memory_stage
from kgcf.runs.run import Run
from kgcf.training.loop import Listener
from machine import describe_protocol

WARM_UP = 2000  # queries by which the speed of the paths is measured


def weigh(run: Run, memory: MemorySettings) -> tuple[Blend, float]:
    """The blend of a run's paths with a new memory, whether it gains or not; and the seconds of the whole stage."""
    settings = run.settings.model_copy(update={"memory": memory.model_copy(update={"enabled": "on"})})
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="kgcf-memory-") as scratch:
        folder = RunFolder(Path(scratch))
        memory_stage(folder, run.data, settings, run.bind_task, Listener(), print)
        return read_blend(folder.file(BLEND)), time.perf_counter() - started


def row_of(blend: Blend, seconds: float, memory: MemorySettings) -> dict[str, Any]:
    """What is recorded of one trial."""
    best = {name: blend.training[name] for name in ("best_epoch", "best_validation_mrr")}
    epochs = blend.training["epochs"]
    return {
        "settings": memory.model_dump(mode="json"),
        **blend.figures,
        "common_weight": blend.common,
        "shrinkage": blend.shrinkage,
        "unreached": blend.unreached,
        **best,
        "seconds_per_epoch": sum(entry["seconds"] for entry in epochs) / len(epochs),
        "seconds": seconds,
    }


def weigh_trials(path: str, trials: list[str]) -> dict[str, Any]:
    """One row for every --try; without any, the run's own settings."""
    run = kgcf.open(path)
    run.recall = None
    rows = {}
    for trial in trials or [""]:
        changes = {f"memory.{key}": value for key, value in run.settings.memory.model_dump().items()}
        given = dict(part.split("=", 1) for part in trial.split(",") if part)
        wanted = {key: value for key, value in {**changes, **given}.items() if value is not None}
        memory = configure(changes=[f"{key}={value}" for key, value in wanted.items()]).memory
        rows[trial or "as set"] = row_of(*weigh(run, memory), memory)
    return {f"{run.data.name} {Path(path).name}": rows}


def share_trials(name: str, seconds: float, shares: list[float], changes: list[str], preset: str) -> dict[str, Any]:
    """One row for every share of the time: 0 is paths alone."""
    data, scratch = read(name), Path(tempfile.mkdtemp(prefix="kgcf-shares-"))
    plain = [*changes, "memory.enabled=off"]
    warm = kgcf.fit(data, scratch / "warm", preset=preset, changes=[*plain, f"training.budget={WARM_UP}"])
    speed = warm.folder.history()[-1]["queries_per_second"]
    rows = {}
    for share in shares:
        budget = max(int((1 - share) * seconds * speed), 1)
        chosen = [*plain, f"training.budget={budget}", "training.epochs=1000"]
        run = kgcf.fit(data, scratch / str(share), preset=preset, changes=chosen)
        memory = None
        if share:
            wanted = configure(preset, data.benchmark, None, [*changes, f"memory.share={share}"]).memory
            fitted = fit_to_time(data.graph, wanted, seconds)
            memory = None if fitted is None else fitted.settings
        if memory is not None:
            rows[f"{share:g}"] = {"queries": budget, **row_of(*weigh(run, memory), memory)}
        else:
            history = run.folder.facts()["history"]
            assert isinstance(history, dict)
            rows[f"{share:g}"] = {"queries": budget, "paths": history["best_validation_mrr"]}
    shutil.rmtree(scratch)
    return {f"{data.name}, {seconds:g} s": rows}


def main() -> None:
    """Measure, print, add to the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("weigh")
    one.add_argument("run")
    one.add_argument("--try", dest="trials", action="append", default=[])
    many = commands.add_parser("shares")
    many.add_argument("data")
    many.add_argument("--seconds", type=float, required=True)
    many.add_argument("--share", type=float, action="append")
    many.add_argument("--set", dest="changes", action="append", default=[])
    many.add_argument("--preset", default="fast")
    speed = commands.add_parser("speed")
    speed.add_argument("data")
    speed.add_argument("--rank", type=int, default=200)
    for each in (one, many, speed):
        each.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.command == "weigh":
        found = weigh_trials(given.run, given.trials)
    elif given.command == "shares":
        shares = given.share or [0.0, 0.1, 0.25, 0.5]
        found = share_trials(given.data, given.seconds, shares, given.changes, given.preset)
    else:
        settings = configure(changes=[f"memory.rank={given.rank}"]).memory
        seconds = estimate_epoch_seconds(read(given.data).graph, settings, steps=10)
        found = {f"{given.data}, rank {given.rank}": {"seconds_per_epoch": seconds}}
    print(json.dumps(found, indent=2))
    if given.output is not None:
        kept = json.loads(given.output.read_text()) if given.output.is_file() else {}
        kept.setdefault(given.command, {}).update(found)
        kept["protocol"] = describe_protocol(torch.get_num_threads())
        given.output.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
