"""What a measurement was made on, as every result says it; and peak memory where Linux tells it."""

import resource
from pathlib import Path

from kgcf.machine.provenance import provenance


def describe_protocol(threads: int) -> dict[str, object]:
    """Everything a reader needs to judge or repeat a measurement; no name of a host or a person."""
    return {**provenance(), "threads": threads, "times": "warm medians, milliseconds per query, wall clock"}


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
