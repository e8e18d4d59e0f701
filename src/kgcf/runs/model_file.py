"""The weights of a run: made from its seed, written into its folder, read back."""

import shlex

import numpy as np
import torch

from kgcf.config import Settings
from kgcf.errors import StorageError
from kgcf.model.kgcf import KGCF
from kgcf.runs.folder import RunFolder
from kgcf.storage import map_arrays, save_arrays

MODEL = "model.safetensors"


def new_model(settings: Settings, relation_count: int) -> KGCF:
    """A model with the initial weights of the run's seed."""
    generator = torch.Generator().manual_seed(settings.training.seed)
    return KGCF(settings.encoder, settings.decoder, relation_count, generator)


def read_model(folder: RunFolder, settings: Settings, relation_count: int) -> KGCF:
    """The trained model of a run's folder; a run whose training is not finished has none."""
    if not folder.sealed(MODEL):
        path = folder.path
        raise StorageError(
            f"{path} has no trained model yet. Finish its training with: kgcf resume {shlex.quote(str(path))}"
        )
    model = new_model(settings, relation_count)
    arrays = map_arrays(folder.file(MODEL))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(np.array(arrays[name])))
    return model


def write_model(folder: RunFolder, model: KGCF) -> None:
    """Write the weights and seal the folder: from then on the run is finished."""
    weights = {name: parameter.detach().cpu().numpy() for name, parameter in model.named_parameters()}
    save_arrays(folder.file(MODEL), weights)
    folder.seal()
