"""One small run, trained once, that every test of the wiring asks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import kgcf
from kgcf.runs.run import Run
from tests.training.tiny import dataset, write_folder
from tests.wiring.raw import Oracle, RawFiles

CHANGES = (
    "encoder.layers=2",
    "encoder.width=8",
    "decoder.hidden=8",
    "objective.negatives=4",
    "objective.answers_share=0.5",
    "objective.alpha=0.3",
    "objective.beta=0.2",
    "space.walks=2",
    "training.epochs=3",
    "training.batch_size=16",
    "training.learning_rate=0.02",
    "training.remove=triple",
    "training.threads=1",
)


@dataclass(frozen=True)
class Town:
    """A folder with raw files, the run trained on it, and what its model says where it sees train, or everything."""

    raw: RawFiles
    run: Run
    train: Oracle
    everything: Oracle


@pytest.fixture(autouse=True)
def one_torch_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def write_town(folder: Path) -> RawFiles:
    """The family of `tests.training`, and friends of whom train knows nothing: no path leads to them, and they tie."""
    write_folder(dataset(), folder)
    with (folder / "valid.txt").open("a") as file:
        file.write("e3\tfriend\tlone 1\ne9\tfriend\tlone 2\n")
    with (folder / "test.txt").open("a") as file:
        file.write("e4\tfriend\tlone 1\ne5\tfriend\tlone 3\n")
    return RawFiles(folder)


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    folder = tmp_path_factory.mktemp("town")
    raw = write_town(folder / "raw")
    run = kgcf.fit(raw.folder, folder / "run", changes=CHANGES)
    return Town(raw, run, Oracle(run, raw.train), Oracle(run, raw.all))
