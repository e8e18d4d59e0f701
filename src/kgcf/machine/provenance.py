"""Where a number comes from: versions, commit, machine, time. Every result that is written carries it."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kgcf import __version__

_PACKAGES = ("torch", "numpy", "numba")


def provenance() -> dict[str, str | int]:
    """Facts about this run as a flat dictionary for `protocol` blocks."""
    facts: dict[str, str | int] = {
        "kgcf": __version__,
        "commit": running_commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory_gib": _memory_gib(),
    }
    for name in _PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    return facts


@cache
def running_commit() -> str:
    """The commit of a source checkout, with '+changes' if files differ; 'release' for an installed package.

    Looked up once: a process runs the code that it began with, whatever is committed while it computes. What computes
    for long calls this first.
    """
    root = Path(__file__).resolve().parents[3]  # of src/kgcf/machine
    if not (root / ".git").exists():
        return "release"
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+changes" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _processor() -> str:
    """The processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")


def _memory_gib() -> int:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError, AttributeError):
        return 0
