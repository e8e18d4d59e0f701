"""What a measurement was made on: processor, memory, versions, commit; and peak memory where Linux tells it."""

import platform
import resource
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch


def describe_protocol(threads: int) -> dict[str, object]:
    """Everything a reader needs to judge or repeat a measurement; no name of a host or a person."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "processor": _processor(),
        "cores": torch.get_num_threads(),
        "threads": threads,
        "memory_gb": round(_total_memory() / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("torch", "numba", "numpy")},
        "times": "warm medians, milliseconds per query, wall clock",
    }


def reset_peak_memory() -> None:
    """Let the peak begin at the memory in use now, where the system allows it."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5", encoding="ascii")


def peak_memory() -> float:
    """Megabytes of resident memory at the peak since the last reset; of the whole process elsewhere."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _commit() -> str:
    folder = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", maxsplit=1)[1].strip()
    return platform.processor()


def _total_memory() -> int:
    facts = Path("/proc/meminfo")
    if facts.exists():
        return int(facts.read_text(encoding="ascii").split()[1]) * 1024
    return 0
