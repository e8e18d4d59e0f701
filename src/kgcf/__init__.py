"""kgcf completes knowledge graphs, explains every answer and backs it with counterfactual evidence."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kgcf.data.source import read
    from kgcf.pipeline import fit, resume
    from kgcf.pipeline import open_run as open

__all__ = ["__version__", "fit", "open", "read", "resume"]

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
