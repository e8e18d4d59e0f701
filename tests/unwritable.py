"""Every command that writes, on disks that are full, nearly full or read-only; tests run this as a process.

`python -m tests.unwritable FOLDER` mounts the disks for itself alone and prints, as JSON, what each command said.
"""

import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import torch

import kgcf
from kgcf.cli import main as command_line
from kgcf.data import registry
from tests.stopping import CHANGES, NotAllowedError, mount_small, remount_read_only
from tests.training.tiny import dataset, write_folder


def commands(run: Path, data: Path, place: Path) -> Iterator[list[str]]:
    """All that write something into `place`."""
    changes = [part for change in CHANGES for part in ("--set", change)]
    yield ["train", str(data), "--output", str(place / "run"), *changes]
    yield ["evaluate", str(run), "--output", str(place / "results.json")]
    for ending in ("tsv", "csv", "parquet", "jsonl", "nt"):
        yield ["complete", str(run), "--candidates", "all", "--output", str(place / f"new.{ending}")]
    for option in ("html", "png"):
        yield ["explain", str(run), "e0", "parent", "e1", f"--{option}", str(place / f"paths.{option}")]
    yield ["counterfactuals", str(data), "--no-cache", "--pairs", "20", "--output", str(place / "counterfactuals")]
    for ending in ("png", "svg"):
        yield ["compare", str(run), "--plot", str(place / f"curves.{ending}")]
        yield ["datasets", "info", str(data), "--plot", str(place / f"relations.{ending}")]
    if registry.at_hand():
        yield ["datasets", "get", "umls", "--to", str(place)]
    yield ["tune", str(data), "--trials", "1", "--output", str(place / "tune"), *changes]


def said(arguments: list[str], disk: Path, kept: set[Path]) -> dict[str, object]:
    """Exit code and words of one command, and what it left behind, which is deleted; a traceback is the code 99."""
    errors, sys.argv = io.StringIO(), ["kgcf", *arguments]
    code: object = 0
    with redirect_stderr(errors), redirect_stdout(io.StringIO()):
        try:
            command_line()
        except SystemExit as end:
            code = end.code or 0
        except BaseException as error:
            code = 99
            print(f"{type(error).__module__}.{type(error).__name__}: {error}", file=sys.stderr)
    left = [entry for entry in disk.iterdir() if entry not in kept]
    for entry in left:
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return {
        "command": [*arguments[:2], *(a for a in arguments if a.startswith(str(disk)))],
        "code": code,
        "said": errors.getvalue(),
        "left": [entry.name for entry in left],
    }


def main() -> None:
    """Make a run, three disks, and try everything on each."""
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    data = write_folder(dataset(), folder / "data")
    run = kgcf.fit(kgcf.read(data), folder / "run", changes=CHANGES).folder.path
    found: dict[str, list[dict[str, object]]] = {}
    for name in ("full", "nearly full", "read-only"):
        disk = folder / name
        try:
            mount_small(disk, 1 << 19)
        except NotAllowedError:
            sys.exit(77)
        shutil.copytree(run, disk / "kept")
        fill(disk, 0 if name == "full" else 2)
        if name == "read-only":
            remount_read_only(disk)
        kept = set(disk.iterdir())
        found[name] = [said(arguments, disk, kept) for arguments in commands(run, data, disk)]
        found[f"a run, {name}"] = [
            said([command, str(disk / "kept")], disk, kept) for command in ("evaluate", "resume")
        ]
    print(json.dumps(found))


def fill(disk: Path, pages: int) -> None:
    """Leave this many pages free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "filler").write_bytes(bytes(max(free - 4096 * pages, 0)))


if __name__ == "__main__":
    main()
