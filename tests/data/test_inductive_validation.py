"""Data whose only validation triples are about the inference graph (NAME_ind/valid): validated and calibrated there."""

import json
from pathlib import Path

import numpy as np
import pytest

import kgcf
from kgcf.data.dataset import Dataset
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.source import read
from kgcf.evaluation.ranks import rank_answers
from kgcf.pipeline import Execution
from kgcf.runs import settling
from kgcf.runs.run import Run
from kgcf.training.loop import Listener
from tests.training.tiny import dataset, write_folder

SMALL = (
    *("encoder.layers=2", "encoder.width=8", "decoder.hidden=8", "objective.negatives=4", "objective.alpha=0"),
    *("training.epochs=2", "training.batch_size=8", "training.threads=1"),
)


def write_pair(folder: Path) -> Path:
    """NAME with train alone, NAME_ind with all three; other people, more of them, under the same relations."""
    path = write_folder(dataset(), folder / "pair")
    for part in ("valid", "test"):
        (path / f"{part}.txt").unlink()
    other = write_folder(dataset(seed=3), folder / "pair_ind")
    for part in ("train", "valid", "test"):
        rows = [line.split("\t") for line in (other / f"{part}.txt").read_text().splitlines()]
        (other / f"{part}.txt").write_text("".join(f"new {h}\t{r}\tnew {t}\n" for h, r, t in rows))
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return read(write_pair(tmp_path_factory.mktemp("inductive")))


@pytest.fixture(scope="module")
def run(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return kgcf.fit(data, tmp_path_factory.mktemp("inductive") / "run", changes=SMALL)


def test_the_validation_task_is_about_the_inference_graph(data: Dataset) -> None:
    assert data.validated_elsewhere
    assert data.valid.observed is data.test.observed
    assert data.valid.entities is data.test.entities
    assert len(data.valid) == 6
    assert data.valid.known.contains(data.valid.queries).all()
    assert not data.valid.known.contains(data.test.queries).any()
    assert "validated and tested on pair_ind with its train triples observed" in " ".join(data.notes)
    assert not any("split is empty" in note for note in data.notes)
    assert "valid and test ask about another graph" in data.summary


def test_validation_triples_of_the_train_graph_come_first(tmp_path: Path) -> None:
    path = write_pair(tmp_path)
    rows = (path / "train.txt").read_text().splitlines(keepends=True)
    (path / "valid.txt").write_text("".join(rows[:3]))
    (path / "train.txt").write_text("".join(rows[3:]))
    found = read(path)
    assert not found.validated_elsewhere
    assert found.valid.observed is found.graph
    assert "trained and validated on pair, tested on pair_ind" in " ".join(found.notes)


def test_a_model_is_chosen_by_the_inference_graph(data: Dataset, run: Run) -> None:
    """The best validation MRR of the training is that of ranking NAME_ind/valid with NAME_ind/train observed."""
    history = run.folder.facts()["history"]
    assert isinstance(history, dict)
    ranks = rank_answers(run.bind(data.test.observed, data.test.entities).scorer, data.valid)
    assert history["best_validation_mrr"] == pytest.approx(float((1 / ranks.realistic).mean()), abs=1e-6)


def test_results_say_so_and_a_run_remembers_it(run: Run) -> None:
    opened = kgcf.open(run.folder.path)
    assert opened.data.validated_elsewhere
    assert opened.data.valid.observed is opened.data.test.observed
    np.testing.assert_array_equal(opened.data.valid.queries, run.data.valid.queries)
    assert opened.data.valid.known.fingerprint == run.data.valid.known.fingerprint
    found, test = opened.evaluate("valid"), opened.evaluate("test", save=True)
    assert found.mrr == pytest.approx(run.evaluate("valid").mrr)
    assert (found.protocol["setting"], test.protocol["setting"]) == ("inductive", "inductive")
    results = json.loads(run.folder.file("results.json").read_text())
    assert "on the inference graph, with its train triples observed" in results["protocol"]["validation"]


def test_probabilities_are_fitted_there_and_shared_questions_are_known(run: Run) -> None:
    """Test asks about the entities of the fit: what both ask is not reported as unshared."""
    record = run.calibrate()
    assert record.valid is not None
    assert record.valid.answers > 0
    assert "on the inference graph" in str(record.protocol["validation"])
    assert record.test is not None
    assert record.test_unshared is not None
    assert record.test_unshared.answers <= record.test.answers


def test_what_the_data_settle_is_measured_on_the_inference_graph(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []

    def look(graph: KnowledgeGraph, _queries: object) -> str:
        looked.append(graph)
        return "triple"

    monkeypatch.setattr(settling, "choose_removal", look)
    settled = settling.settle(kgcf.config.configure("nbfnet", changes=SMALL), data)
    assert looked == [data.test.observed]
    reach = settling.reach_of(settled, data)
    assert reach.valid is not None
    assert reach.valid[1] == 1.0  # a grandparent is two steps away


def test_a_time_is_kept_there_too(data: Dataset, tmp_path: Path) -> None:
    said: list[str] = []
    run = kgcf.fit(data, tmp_path / "run", changes=SMALL, time="10m", execution=Execution(Listener(), said.append))
    assert run.folder.survey() is not None
    assert any("layers" in line and "negatives" in line for line in said)
