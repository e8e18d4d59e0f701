"""kgcf completes knowledge graphs, explains every answer and backs it with counterfactual evidence.

    read(source)         read a benchmark, a folder, a file or triples in memory; or your own splits
    fit(source, output)  train a model, and keep it as a run in a folder
    open(path)           open a run: evaluate, predict, complete, score, explain
    resume(path)         continue a run that was stopped

`import kgcf`, then `kgcf.open(…)`: `from kgcf import *` leaves Python's own `open` alone.
"""

import os
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Idle OpenMP threads sleep instead of spinning, or they take the cores from other processes and from our own threads.
# torch reads this when it is imported, so it has no effect after `import torch`; a value of yours is kept.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from kgcf.data.source import read
    from kgcf.pipeline import fit, open_run, resume

    open = open_run

__all__ = ["__version__", "fit", "read", "resume"]  # not `open`, which is a name of Python's own

_HOMES = {
    "read": ("kgcf.data.source", "read"),
    "fit": ("kgcf.pipeline", "fit"),
    "open": ("kgcf.pipeline", "open_run"),
    "resume": ("kgcf.pipeline", "resume"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import the public functions when they are first used, so that `kgcf --help` starts at once."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kgcf' has no attribute '{name}'")
    from importlib import import_module

    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    """What there is to use; the functions are there before they are imported."""
    return sorted({*__all__, *_HOMES, *(name for name in globals() if name.startswith("__"))})
