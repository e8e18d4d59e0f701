"""A trained memory: what it knows, and its opinion of all entities as answers, on one scale for every question."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgcf.memory.checkpoint import complex_from
from kgcf.memory.complex_model import ComplEx
from kgcf.storage import map_arrays, read_header, save_arrays

FILE = "memory.safetensors"
_BLOCK = 32  # questions that are computed together
_FLAT = 1e-6  # a standard deviation below which a memory has no opinion


@dataclass(frozen=True, eq=False)
class Memory:
    """ComplEx with the entities of a graph that it knows."""

    model: ComplEx
    known: NDArray[np.int64] = field(repr=False)  # [M] ids of the entities that it was trained on, ascending
    relations: NDArray[np.bool_] = field(repr=False)  # [2R] whether train has an edge of the relation
    facts: dict[str, Any] = field(default_factory=dict)  # how it was trained

    @cached_property
    def sizes(self) -> NDArray[np.float32]:
        """[M] the lengths of the entities' vectors."""
        lengths: NDArray[np.float32] = np.linalg.norm(self.model.entities.numpy(), axis=1)
        return lengths

    def places(self, entities: NDArray[np.int64]) -> NDArray[np.int64]:
        """[…] the rows of entities, −1 for those that it never saw."""
        found = np.searchsorted(self.known, entities)
        inside = np.minimum(found, max(len(self.known) - 1, 0))
        return np.where(len(self.known) and self.known[inside] == entities, inside, -1)

    def speaks(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[B] whether it knows the entity and the relation of a question."""
        known: NDArray[np.bool_] = (self.places(heads) >= 0) & self.relations[relations]
        return known

    def opinions(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, M] scores of the known entities, of mean 0 and variance 1 in every question; all of them spoken about.

        Questions are computed in blocks of one size, so that an opinion does not depend on what else is asked.
        """
        places = self.places(heads)
        result = np.empty((len(heads), len(self.known)), dtype=np.float32)
        for first in range(0, len(heads), _BLOCK):
            part = slice(first, first + _BLOCK)
            result[part] = _standardised(self._scores(places[part], relations[part]))
        return result

    def _scores(self, places: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[≤ block, M] plain scores."""
        missing = _BLOCK - len(places)
        filled = [torch.from_numpy(np.pad(part, (0, missing), mode="edge")) for part in (places, relations)]
        scores: NDArray[np.float32] = self.model.score_tails(*filled).numpy()[: len(places)]
        return scores

    def save(self, path: Path) -> None:
        """Write everything to one `.safetensors` file, atomically."""
        arrays = self.model.arrays() | {"known": self.known, "known_relations": self.relations}
        save_arrays(path, arrays, {"facts": json.dumps(self.facts)})

    @classmethod
    def open(cls, path: Path) -> "Memory":
        """What `save` wrote."""
        arrays = map_arrays(path)
        known, relations = (np.array(arrays[name]) for name in ("known", "known_relations"))
        return cls(complex_from(arrays), known, relations, json.loads(read_header(path)[1]["facts"]))


def _standardised(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of mean 0 and variance 1; zeros where all scores are the same."""
    centred: NDArray[np.float32] = scores - scores.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=1, keepdims=True))
    centred /= np.maximum(spread, _FLAT)
    centred[spread[:, 0] <= _FLAT] = 0
    return centred
