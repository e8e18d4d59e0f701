"""Nothing that is fitted or chosen has seen test: another test file changes no bit of it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.pipeline import fit
from kgcf.prediction.calibration.calibrate import Bind, calibrate, calibrate_completion, validation_task
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.runs.run import Run
from kgcf.runs.validation import divided_mrr
from kgcf.training.distributed import World
from tests.training.tiny import TINY, family

QUICK = (*TINY, "training.threads=1", "training.epochs=1")
Triples = list[tuple[str, str, str]]
RELATIONS = ("parent", "grandparent", "friend")


@dataclass(frozen=True)
class Parts:
    """Triples by file."""

    train: Triples
    valid: Triples
    test: Triples

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in vars(self).items():
            (folder / f"{name}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
        return folder


def parts(seed: int, prefix: str = "e") -> Parts:
    """A family; validation and test ask the same questions about grandparents, and both hold friends back."""
    generator = np.random.default_rng(seed)
    ids = family(generator).triples.tolist() + [(h, 2, t) for h, t in generator.integers(0, 40, (160, 2)).tolist()]
    rows = [(f"{prefix}{h}", RELATIONS[r], f"{prefix}{t}") for h, r, t in dict.fromkeys(map(tuple, ids))]
    held = [row for row in rows if row[1] == "grandparent"][::2] + [row for row in rows if row[1] == "friend"][::4]
    return Parts([row for row in rows if row not in held], held[::2], held[1::2])


def other_test(found: Parts) -> Parts:
    """The same train and validation; a test file with other truths, other questions and entities of its own."""
    asked = [(h, r, f"e{(int(t[1:]) * 7 + 3) % 40}") for h, r, t in found.valid]
    new = [("stranger", "parent", found.train[0][0]), (found.train[1][0], "friend", "another stranger")]
    return Parts(found.train, found.valid, asked + new)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("one")
    return fit(read(parts(0).write(folder / "data")), folder / "run", preset="nbfnet", changes=QUICK)


def with_data(run: Run, data: Dataset) -> Run:
    """The same weights with another test file."""
    return Run(run.folder, run.model, data, run.settings)


def bind_of(run: Run) -> Bind:
    return lambda task: run.bind(task.observed, task.entities)


def test_another_test_file_gives_the_same_calibration_bit_for_bit(trained: Run, tmp_path: Path) -> None:
    other = with_data(trained, read(other_test(parts(0)).write(tmp_path / "other")))
    assert len(other.data.entities) > len(trained.data.entities)
    assert set(map(tuple, other.data.test.queries.tolist())) != set(map(tuple, trained.data.test.queries.tolist()))
    first, second = (calibrate(bind_of(run), run.data, "key") for run in (trained, other))
    assert first.calibration == second.calibration
    assert first.completion == second.completion
    assert first.valid == second.valid
    assert first.calibration.curves
    assert first.completion.curve is not None
    assert len(first.completion.curve.logits) > 1  # a curve that rises: something was learned
    everybody = [calibrate_completion(bind_of(run), run.data, "all") for run in (trained, other)]
    assert everybody[0] == everybody[1]
    assert everybody[0].curve != first.completion.curve


def test_labels_of_the_fit_are_validation_truths(trained: Run) -> None:
    run = trained
    record = calibrate(bind_of(run), run.data, "key")
    assert record.valid is not None
    truths = {tuple(row) for row in run.data.valid.queries.tolist()}
    asked = {(h, r) for h, r, _ in truths} | {(t, r + 3) for _, r, t in truths}
    tested = {(h, r) for h, r, _ in run.data.test.queries.tolist()}
    assert asked & tested  # test truths are among the answers, and count as false
    true = round(record.valid.base_rate * record.valid.answers)
    assert 0 < true <= 2 * len(truths)
    assert record.completion.facts["true"] <= len(truths)


def test_validation_is_filtered_without_test(trained: Run, tmp_path: Path) -> None:
    known = {tuple(row) for row in trained.data.valid.known.triples.tolist()}
    train, valid, test = ({tuple(row) for row in split.queries.tolist()} for split in trained.data.splits)
    assert known == train | valid
    assert test - known
    found = []
    same_people = Parts(parts(0).train, parts(0).valid, other_test(parts(0)).test[:-2])
    for data in (trained.data, read(same_people.write(tmp_path / "other"))):
        observed = ObservedGraph(trained.model, data.graph, data.entities, data.relations, None)
        found.append(divided_mrr(observed.scorer, data, None, 0, World()))
    assert found[0] == found[1]


def test_training_on_another_test_file_gives_the_same_run(trained: Run, tmp_path: Path) -> None:
    same_people = Parts(parts(0).train, parts(0).valid, other_test(parts(0)).test[:-2])
    other = fit(same_people.write(tmp_path / "data"), tmp_path / "run", preset="nbfnet", changes=QUICK)
    for mine, theirs in zip(trained.model.parameters(), other.model.parameters(), strict=True):
        assert mine.equal(theirs)
    histories = [run.folder.facts()["history"]["best_validation_mrr"] for run in (trained, other)]  # type: ignore[index]
    assert histories[0] == histories[1]
    assert trained.calibration is not None
    assert other.calibration is not None
    assert trained.calibration.calibration == other.calibration.calibration
    assert trained.calibration.completion == other.calibration.completion


def test_an_inductive_pair_is_calibrated_without_either_test_file(trained: Run, tmp_path: Path) -> None:
    records = []
    for name, change in (("one", False), ("two", True)):
        old, new = parts(0), parts(5, "new")
        folder = (other_test(old) if change else old).write(tmp_path / name / "pair")
        (Parts(new.train, new.valid, new.test[:2]) if change else new).write(tmp_path / name / "pair_ind")
        data = read(folder)
        assert data.inductive
        run = with_data(trained, data)
        records.append(calibrate(bind_of(run), data, "key"))
    assert records[0].calibration == records[1].calibration
    assert records[0].completion == records[1].completion


def test_the_validation_task_is_that_of_data_without_test(tmp_path: Path) -> None:
    changed = other_test(parts(0))
    (changed.write(tmp_path / "bare") / "test.txt").unlink()
    bare, full = read(tmp_path / "bare"), read(changed.write(tmp_path / "full"))
    task = validation_task(full)
    assert (task.observed.fingerprint, task.known.fingerprint) == (
        bare.valid.observed.fingerprint,
        bare.valid.known.fingerprint,
    )
    assert task.entities.labels() == bare.entities.labels()
    assert full.valid.observed.fingerprint != task.observed.fingerprint
    assert validation_task(bare) is bare.valid
