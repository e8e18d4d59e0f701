"""The weights of a run, whatever its model: KGCF's, or those of another model behind the same contract."""

import shlex

import numpy as np
import torch

from kgcf.baselines.building import build_baseline
from kgcf.baselines.contract import Baseline
from kgcf.config import Settings
from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import StorageError
from kgcf.model.kgcf import KGCF
from kgcf.runs.folder import RunFolder
from kgcf.runs.model_file import MODEL, read_model, write_model
from kgcf.storage import map_arrays, save_arrays
from kgcf.training.baseline_loop import copy_state, put_state


def new_baseline(settings: Settings, graph: KnowledgeGraph) -> Baseline:
    """A baseline with the initial weights of the run's seed."""
    assert settings.baseline is not None
    training = settings.training
    return build_baseline(settings.baseline, graph, training.batch_size, training.learning_rate, training.seed)


def read_any_model(folder: RunFolder, settings: Settings, graph: KnowledgeGraph) -> KGCF | Baseline:
    """The trained model of a run's folder; a run whose training is not finished has none."""
    if settings.baseline is None:
        return read_model(folder, settings, graph.relation_count)
    if not folder.sealed(MODEL):
        path = folder.path
        raise StorageError(
            f"{path} has no trained model yet. Finish its training with: kgcf resume {shlex.quote(str(path))}"
        )
    model = new_baseline(settings, graph)
    arrays = map_arrays(folder.file(MODEL))
    put_state(model, {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
    return model


def write_any_model(folder: RunFolder, model: KGCF | Baseline) -> None:
    """Write the weights and seal the folder: from then on the run is finished."""
    if not isinstance(model, Baseline):
        write_model(folder, model)
        return
    save_arrays(folder.file(MODEL), {name: tensor.cpu().numpy() for name, tensor in copy_state(model).items()})
    folder.seal()
