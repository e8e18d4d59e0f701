"""Checkpoints of a memory in training: its numbers, Adagrad's sums and its place, in one file, whole or absent."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from kgcf.errors import StorageError
from kgcf.memory.complex_model import ComplEx
from kgcf.storage import map_arrays, read_checkpoint_header, save_arrays


@dataclass
class MemoryProgress:
    """Where a training stands. Random numbers come from streams of (seed, epoch), so no other state exists."""

    epoch: int = 0  # the epoch that is running, from 0
    step: int = 0  # steps done in this epoch
    best: float = -1.0  # best validation MRR so far
    best_epoch: int = -1
    running: dict[str, float] = field(default_factory=dict)  # sums of this epoch
    history: list[dict[str, float]] = field(default_factory=list)  # one entry per finished epoch


@dataclass
class MemoryCheckpoint:
    """Everything that a training needs to go on."""

    model: ComplEx
    squares: ComplEx  # Adagrad's sums of squared gradients
    best: ComplEx
    progress: MemoryProgress


def save_checkpoint(path: Path, checkpoint: MemoryCheckpoint, key: str) -> None:
    """Write the checkpoint under a temporary name and rename it; `key` ties it to its settings and data."""
    parts = {"model": checkpoint.model, "squares": checkpoint.squares, "best": checkpoint.best}
    arrays = {f"{part}.{name}": array for part, held in parts.items() for name, array in held.arrays().items()}
    save_arrays(path, arrays, {"progress": json.dumps(asdict(checkpoint.progress)), "key": key})


def load_checkpoint(path: Path, key: str) -> MemoryCheckpoint:
    """Read a checkpoint back; refuse one that is damaged or belongs to other settings or other data."""
    metadata = read_checkpoint_header(path)
    if metadata.get("key") != key:
        raise StorageError(f"{path} was written with other settings or other data; it cannot be continued here.")
    arrays = map_arrays(path)
    model, squares, best = (complex_from(arrays, f"{part}.") for part in ("model", "squares", "best"))
    return MemoryCheckpoint(model, squares, best, MemoryProgress(**json.loads(metadata["progress"])))


def complex_from(arrays: Mapping[str, NDArray[np.generic]], prefix: str = "") -> ComplEx:
    """The numbers that `ComplEx.arrays` gave to be saved."""
    return ComplEx(*(torch.from_numpy(np.array(arrays[prefix + name])) for name in ("entities", "relations")))
