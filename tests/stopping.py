"""Trainings that are stopped at the n-th moment, for every n: by a kill, by a full disk; tests run this as a process.

`python -m tests.stopping FOLDER WAY:N …` trains once to the end, counts the moments, and forks a child for every N-th,
which is stopped there. What it leaves must go on to the same weights. The outcome is printed as JSON.
"""

import ctypes
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import safetensors.numpy
import torch

import kgcf
from kgcf.errors import KgcfError
from kgcf.pipeline import Execution
from kgcf.runs.comparison import read_record
from kgcf.runs.folder import RunFolder
from kgcf.runs.watch import Watcher
from kgcf.storage import map_arrays
from tests.training.tiny import TINY, dataset

CHANGES = (
    *TINY,
    "objective.negatives=4",
    "space.walks=2",
    "training.threads=1",
    "training.batch_size=64",
    "training.checkpoint_seconds=0",
    "memory.enabled=on",
    "memory.rank=2",
    "memory.epochs=1",
    "memory.batch_size=100",
)
KILLED, REFUSED, CRASHED = 137, 3, 4
FULL = OSError(28, "No space left on device")
WRITERS = (
    "storage",
    "locking",
    "runs",
    "run",
    "pipeline",
    "stages",
    "calibrating",
    "loop",
    "checkpoint",
    "interrupts",
    "memory_stage",
    "trainer",
)
Act = Callable[[], None]


class NotAllowedError(Exception):
    """Disks cannot be mounted here."""


@dataclass
class Moments:
    """Counts moments, and acts at one of them; at 0 it only counts. `lasting`: also at all that follow."""

    at: int
    act: Act
    lasting: bool = False
    count: int = 0

    def passed(self) -> None:
        """One more."""
        self.count += 1
        if self.count == self.at or (self.lasting and self.at and self.count > self.at):
            self.act()


@dataclass
class Outcome:
    """How many moments were tried, and what went wrong, by moment."""

    tried: int = 0
    stopped: int = 0
    wrong: dict[str, str] = field(default_factory=dict)


def die() -> None:
    """End like kill -9: nothing is flushed, closed or cleaned up."""
    os._exit(KILLED)


def watch_calls(moments: Moments, folder: Path, kinds: tuple[str, ...]) -> None:
    """A moment before every opening for writing, renaming, deleting, … that Python does below the folder."""

    def hook(event: str, values: tuple[Any, ...]) -> None:
        if event not in kinds or not values or not str(values[0]).startswith(str(folder)):
            return
        if event != "open" or values[2] & (os.O_WRONLY | os.O_RDWR):
            moments.passed()

    sys.addaudithook(hook)


def watch_writers(moments: Moments) -> None:
    """Moments around every sync and gradient step, and amid every file that a library writes."""

    def execution(module: Any, name: str, half: bool = False) -> None:
        usual = getattr(module, name)

        def wrapped(*values: Any, **named: Any) -> Any:
            moments.passed()
            result = usual(*values, **named)
            if half:
                where = next(v for v in values if isinstance(v, str | Path))
                if moments.at == moments.count + 1:
                    os.truncate(where, Path(where).stat().st_size // 2)
            moments.passed()
            return result

        setattr(module, name, wrapped)

    execution(os, "fsync")
    execution(torch.optim.Adam, "step")
    execution(safetensors.numpy, "save_file", half=True)
    execution(pq, "write_table", half=True)


def watch_lines(moments: Moments, names: Iterable[str] = WRITERS) -> None:
    """A moment before every line of the modules that write."""
    files = {f"{name}.py" for name in names}

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            moments.passed()
        return local

    def start(frame: FrameType, _: str, __: Any) -> Any:
        path = Path(frame.f_code.co_filename)
        return local if path.name in files and "kgcf" in path.parts else None

    sys.settrace(start)


def train(run: Path) -> None:
    """Begin the run, or go on with it, as the command line does."""
    with Watcher(shown=True) as watcher:
        execution = Execution(watcher, watcher.say)
        if (run / "run.json").is_file():
            kgcf.resume(run, execution)
        else:
            kgcf.fit(dataset(), run, changes=CHANGES, execution=execution)


def in_child(work: Act, error_file: Path) -> int:
    """Run something in a forked child; its exit code, and its traceback in a file."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 0
    try:
        work()
    except KgcfError:
        code = REFUSED
    except BaseException:
        error_file.write_text(traceback.format_exc())
        code = CRASHED
    finally:
        os._exit(code)


def check(run: Path, whole: Path) -> str:
    """Go on with what was left; what is wrong then, or nothing."""
    try:
        if (run / "run.json").is_file() and RunFolder(run).sealed("model.safetensors"):
            kgcf.open(run)  # it says that it is finished
        train(run)
        kgcf.open(run)
        for file in ("model.safetensors", "memory.safetensors"):
            mine, wanted = (map_arrays(folder / file) for folder in (run, whole))
            if any(not np.array_equal(mine[name], wanted[name]) for name in wanted):
                return f"other weights in {file}"
        names = [sorted(entry.name for entry in folder.iterdir()) for folder in (run, whole)]
        if names[0] != names[1]:
            return f"other files: {sorted(set(names[0]) ^ set(names[1]))}"
        logged = [json.loads(line)["epoch"] for line in (run / "log.jsonl").read_text().splitlines()]
        if not logged == [entry["epoch"] for entry in read_record(run).epochs] == [1, 2]:
            return f"the log has epochs {logged}"
    except BaseException:
        return traceback.format_exc()
    return ""


def stop_at(folder: Path, moment: str, outcome: Outcome, work: Callable[[Path], None], expected: int) -> None:
    """Stop one training and look at what is left."""
    run, error_file = folder / "run", folder / "error"
    error_file.unlink(missing_ok=True)
    code = in_child(lambda: work(run), error_file)
    outcome.tried += 1
    outcome.stopped += code == expected
    if code not in (0, expected):
        outcome.wrong[moment] = f"exit {code}: {error_file.read_text() if error_file.exists() else ''}"
    log = run / "log.jsonl"
    if code == KILLED and log.exists() and outcome.tried % 2:
        os.truncate(log, max(log.stat().st_size - 9, 0))  # a kill may cut a line
    (folder / "filler").unlink(missing_ok=True)
    for half in run.glob(".*.part"):
        os.utime(half, (0, 0))  # somebody comes back the next day
    if problem := check(run, folder / "whole"):
        outcome.wrong[moment] = problem
    shutil.rmtree(run, ignore_errors=True)


Install = Callable[[Moments], None]


def count_moments(folder: Path, install: Install) -> int:
    """How many moments a whole training has."""
    reader, writer = os.pipe()

    def count() -> None:
        moments = Moments(0, die)
        install(moments)
        train(folder / "counted")
        sys.settrace(None)
        os.write(writer, str(moments.count).encode())

    assert in_child(count, folder / "error") == 0, (folder / "error").read_text()
    os.close(writer)
    with os.fdopen(reader) as pipe:
        return int(pipe.read())


def kill_at_calls(folder: Path, every: int) -> Outcome:
    """Kills before every writing call below the run folder, and around syncs, steps and library writes."""
    kinds = ("open", "os.rename", "os.remove", "os.mkdir", "os.chmod")

    def install(moments: Moments) -> None:
        watch_calls(moments, folder, kinds)
        watch_writers(moments)

    return _kill_each(folder, install, every)


def kill_at_lines(folder: Path, every: int) -> Outcome:
    """Kills before lines of the modules that write."""
    return _kill_each(folder, watch_lines, every)


def _kill_each(folder: Path, install: Install, every: int) -> Outcome:
    outcome = Outcome()
    for moment in range(1, count_moments(folder, install) + 1, every):

        def work(run: Path, moment: int = moment) -> None:
            install(Moments(moment, die))
            train(run)

        stop_at(folder, str(moment), outcome, work, KILLED)
    return outcome


def kill_at_random(folder: Path, times: int) -> Outcome:
    """A real SIGKILL from outside, at random moments."""
    outcome, draw, started = Outcome(), random.Random(0), time.monotonic()
    train(folder / "timed")
    length = time.monotonic() - started
    for index in range(times):
        pause = draw.uniform(0, length)

        def work(run: Path, pause: float = pause) -> None:
            parent = os.getpid()
            if not os.fork():
                time.sleep(pause)
                os.kill(parent, signal.SIGKILL)
                os._exit(0)
            train(run)

        stop_at(folder, f"{index}: after {pause:.4f} s", outcome, work, -signal.SIGKILL)
    return outcome


def fill_at_calls(folder: Path, every: int) -> Outcome:
    """A disk that is full from the n-th writing call on; afterwards there is room again."""

    def fail() -> None:
        raise FULL

    def install(moments: Moments) -> None:
        moments.act, moments.lasting = fail, True
        watch_calls(moments, folder, ("open", "os.mkdir", "os.rename"))

    outcome = Outcome()
    for moment in range(1, count_moments(folder, install) + 1, every):

        def work(run: Path, moment: int = moment) -> None:
            install(Moments(moment, fail))
            train(run)

        stop_at(folder, str(moment), outcome, work, REFUSED)
    return outcome


def fill_disk(folder: Path, every: int) -> Outcome:
    """A real disk of 1 MB, mounted for this process alone, with room for 0, N, 2 N, … pages; none where forbidden."""
    size, page = 1 << 20, 4096
    disk = folder / "disk"
    try:
        mount_small(disk, size)
    except NotAllowedError:
        return Outcome()
    (disk / "whole").symlink_to(folder / "whole")
    outcome = Outcome()
    for room in range(0, 60, every):
        with (disk / "filler").open("wb") as filler:
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            filler.write(bytes(max(free - room * page, 0)))
        stop_at(disk, f"{room} pages", outcome, train, REFUSED)
    return outcome


def mount_small(disk: Path, size: int) -> None:
    """A tmpfs that only this process sees and that goes with it; mounting is for root."""
    disk.mkdir()
    library = ctypes.CDLL(None, use_errno=True)
    new_namespace, private = 0x00020000, (1 << 18) | (1 << 14)
    if (
        library.unshare(new_namespace)
        or library.mount(b"none", b"/", None, private, None)
        or library.mount(b"tmpfs", str(disk).encode(), b"tmpfs", 0, f"size={size}".encode())
    ):
        raise NotAllowedError


def remount_read_only(disk: Path) -> None:
    """Forbid writing on a disk that was mounted here."""
    if ctypes.CDLL(None).mount(None, str(disk).encode(), None, 32 | 1, None):
        raise NotAllowedError


WAYS: dict[str, Callable[[Path, int], Outcome]] = {
    "calls": kill_at_calls,
    "lines": kill_at_lines,
    "random": kill_at_random,
    "full": fill_at_calls,
    "disk": fill_disk,
}


def main() -> None:
    """Train to the end once, so that everything is compiled and imported, then stop everywhere."""
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    train(folder / "whole")
    found = {}
    for asked in sys.argv[2:]:
        way, _, number = asked.partition(":")
        place = folder / way
        place.mkdir()
        (place / "whole").symlink_to(folder / "whole")
        found[way] = asdict(WAYS[way](place, int(number)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
