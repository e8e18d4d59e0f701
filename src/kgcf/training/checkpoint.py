"""Checkpoints: weights, optimiser and place of a run in one file, whole or absent; resuming continues exactly."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgcf.errors import StorageError
from kgcf.storage import map_arrays, read_checkpoint_header, save_arrays

_MODEL, _BEST, _MEAN, _SQUARE = "model.", "best.", "adam_mean.", "adam_square."
_AVERAGE = "average."


@dataclass
class Progress:
    """Where a run stands. Random numbers are drawn from streams of (seed, epoch, step), so no other state exists."""

    epoch: int = 0  # the epoch that is running, from 0
    step: int = 0  # steps done in this epoch
    steps: int = 0  # steps done in all
    best: float = -1.0  # best validation MRR so far
    best_epoch: int = -1
    waiting: int = 0  # validations since the best one
    running: dict[str, float] = field(default_factory=dict)  # sums of this epoch: losses, queries, …
    history: list[dict[str, float]] = field(default_factory=list)  # one entry per finished epoch
    finished: bool = False
    processes: int = 1  # among which every batch is divided; another number would round sums in another way


@dataclass
class Checkpoint:
    """Everything that a training run needs to go on."""

    progress: Progress
    weights: dict[str, Tensor]
    best: dict[str, Tensor]
    optimiser: dict[str, Any]  # torch's state dict of Adam
    mean: dict[str, Tensor] = field(default_factory=dict)  # of the weights, where they are averaged
    averaged: int = 0  # sets of weights in it


def save_checkpoint(path: Path, checkpoint: Checkpoint, key: str) -> None:
    """Write the checkpoint under a temporary name and rename it; `key` ties it to its configuration and data."""
    arrays: dict[str, NDArray[np.generic]] = {}
    sets = ((_MODEL, checkpoint.weights), (_BEST, checkpoint.best), (_AVERAGE, checkpoint.mean))
    for prefix, tensors in sets:
        arrays |= {prefix + name: tensor.cpu().numpy() for name, tensor in tensors.items()}
    steps = 0
    for index, state in checkpoint.optimiser["state"].items():
        arrays[f"{_MEAN}{index}"] = state["exp_avg"].cpu().numpy()
        arrays[f"{_SQUARE}{index}"] = state["exp_avg_sq"].cpu().numpy()
        steps = int(state["step"])
    metadata = {"progress": json.dumps(asdict(checkpoint.progress)), "adam_steps": str(steps), "key": key}
    metadata["averaged"] = str(checkpoint.averaged)
    save_arrays(path, arrays, metadata)


def load_checkpoint(path: Path, optimiser: torch.optim.Adam, key: str) -> Checkpoint:
    """Read a checkpoint back; refuse one that is damaged or belongs to another configuration or other data."""
    metadata = read_checkpoint_header(path)
    if metadata.get("key") != key:
        raise StorageError(
            f"{path} was written by a run with another configuration or other data; it cannot be continued here."
        )
    arrays = map_arrays(path)
    state = optimiser.state_dict()
    steps = torch.tensor(float(metadata["adam_steps"]))
    indices = [int(name[len(_MEAN) :]) for name in arrays if name.startswith(_MEAN)]
    state["state"] = {
        index: {
            "step": steps.clone(),
            "exp_avg": _tensor(arrays[f"{_MEAN}{index}"]),
            "exp_avg_sq": _tensor(arrays[f"{_SQUARE}{index}"]),
        }
        for index in sorted(indices)
    }
    progress = Progress(**json.loads(metadata["progress"]))
    averaged = int(metadata.get("averaged", "0"))  # older checkpoints have none
    weights, best, mean = (_with_prefix(arrays, prefix) for prefix in (_MODEL, _BEST, _AVERAGE))
    return Checkpoint(progress, weights, best, state, mean, averaged)


def copy_weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all parameters by name."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def put_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Overwrite all parameters by name."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])


def _with_prefix(arrays: dict[str, NDArray[np.generic]], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: _tensor(array) for name, array in arrays.items() if name.startswith(prefix)}


def _tensor(array: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(np.array(array))
