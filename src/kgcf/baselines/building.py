"""From a name to a model: only the module that is needed is imported, PyKEEN with a clear sentence where missing."""

from importlib import import_module

from kgcf.baselines.catalogue import find_baseline
from kgcf.baselines.contract import Baseline
from kgcf.baselines.settings import BaselineSettings
from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import MissingExtraError

_MODULES = {
    "floor": "kgcf.baselines.frequency",
    "embeddings": "kgcf.baselines.embeddings.build",
    "gnn": "kgcf.baselines.embeddings.build",
}  # the module's `build` makes the model; path models have one module each


def build_baseline(
    settings: BaselineSettings, graph: KnowledgeGraph, batch_size: int, learning_rate: float, seed: int
) -> Baseline:
    """A model with the initial weights of its seed, ready to be trained on a graph, or to take saved weights."""
    entry = find_baseline(settings.model)
    check_pykeen(entry.name)
    module = import_module(_MODULES.get(entry.family, f"kgcf.baselines.paths.{entry.name}"))
    made = module.build(settings, graph, batch_size, learning_rate, seed)
    assert isinstance(made, Baseline)
    return made


def check_pykeen(name: str) -> None:
    """Refuse a model that needs PyKEEN where it is not installed."""
    if not find_baseline(name).needs_pykeen:
        return
    try:
        import_module("kgcf.baselines.embeddings.pykeen_model")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "kgcf":
            raise
        raise MissingExtraError(f"The model '{name}'", "baselines") from error
