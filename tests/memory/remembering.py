"""A small run with a memory whose weights are chosen by hand, so that every consumer of scores must show it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import kgcf
from kgcf.memory.memory import Memory
from kgcf.prediction.blending.blend import Blend
from kgcf.prediction.blending.recall import Recall
from kgcf.runs.run import Run
from tests.training.tiny import dataset, write_folder

PATHS = (
    "encoder.layers=2",
    "encoder.width=8",
    "decoder.hidden=8",
    "objective.negatives=4",
    "objective.alpha=0.1",
    "space.walks=2",
    "training.epochs=1",
    "training.batch_size=16",
    "training.remove=triple",
    "training.threads=1",
)
MEMORY = ("memory.enabled=on", "memory.rank=4", "memory.epochs=4", "memory.batch_size=32", "memory.n3=0.001")
CHANGES = (*PATHS, *MEMORY)
WEIGHTS = (0.0, 1.5, 0.75, 2.0, 1.0, 0.5)  # of parent, grandparent, friend, and of their inverses
LOST = -3.0


def write_town(folder: Path) -> Path:
    """The family, and friends of whom train knows nothing."""
    write_folder(dataset(), folder)
    with (folder / "valid.txt").open("a") as file:
        file.write("e3\tfriend\tlone 1\ne9\tfriend\tlone 2\n")
    with (folder / "test.txt").open("a") as file:
        file.write("e4\tfriend\tlone 1\ne5\tfriend\tlone 3\n")
    return folder


@dataclass(frozen=True)
class Remembering:
    """The same run twice: paths alone, and with a memory whose weights are known."""

    paths: Run
    both: Run
    memory: Memory

    def opinion(self, head: int, relation: int) -> NDArray[np.float64]:
        """[N] what memory thinks of all entities, by the formula; 0 of those it does not know."""
        model = self.memory.model
        h, r = model.entities.double().numpy(), model.relations.double().numpy()
        rank = h.shape[1] // 2
        vectors, relations = h[:, :rank] + 1j * h[:, rank:], r[:, :rank] + 1j * r[:, rank:]
        place = self.memory.known.tolist().index(head)
        scores = ((vectors[place] * relations[relation]) @ vectors.conj().T).real
        found = np.zeros(len(self.both.data.entities))
        found[self.memory.known] = (scores - scores.mean()) / scores.std()
        return found


def make_remembering(folder: Path) -> Remembering:
    """Train once; open twice."""
    run = kgcf.fit(write_town(folder / "data"), folder / "run", changes=CHANGES)
    assert run.recall is not None
    both, paths = kgcf.open(folder / "run"), kgcf.open(folder / "run")
    assert both.recall is not None
    memory = both.recall.memory
    both.recall = Recall(memory, Blend(True, "chosen by hand", WEIGHTS, 1.0, None, LOST))
    paths.recall = None
    both.calibration = paths.calibration = None
    return Remembering(paths, both, memory)
