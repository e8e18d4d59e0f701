"""From data to a run folder and back: stages computed once, settings that arrive, data that come back whole."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import kgcf
from kgcf.config import configure
from kgcf.data.dataset import transductive
from kgcf.data.splitting import SplitSettings
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import StorageError
from kgcf.pipeline import Execution
from kgcf.prediction.calibration.sampling import collect_best
from kgcf.runs.run import Run
from kgcf.runs.settling import settle
from kgcf.storage import map_arrays
from kgcf.training.loop import Listener
from tests.training.tiny import dataset
from tests.wiring.conftest import CHANGES, Town
from tests.wiring.raw import reciprocal_ranks

QUICK = (*CHANGES, "training.epochs=1")


class Stopping(Listener):
    """Presses Ctrl-C after the first step."""

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        raise KeyboardInterrupt


def test_stages_are_said_kept_and_not_done_again(town: Town, tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        kgcf.fit(town.raw.folder, tmp_path / "run", changes=QUICK, execution=Execution(Stopping(), said.append))
    assert [line.split()[0].rstrip(":") for line in said] == ["treatment", "entity", "matching"]
    assert f"{len(town.raw.train):,} triples" in said[2]
    kept = {name: (tmp_path / "run" / name).read_bytes() for name in ("treatment.safetensors", "space.safetensors")}
    said.clear()
    run = kgcf.resume(tmp_path / "run", Execution(say=said.append))
    assert [line.split(":")[0] for line in said] == ["Memory is off"]  # nothing of the stages
    assert {name: run.folder.file(name).read_bytes() for name in kept} == kept
    whole = kgcf.fit(town.raw.folder, tmp_path / "whole", changes=QUICK)
    rows = town.raw.train[:20]
    assert run.score(rows).tolist() == whole.score(rows).tolist()


def test_the_space_is_made_by_its_settings(town: Town, tmp_path: Path) -> None:
    spaces = []
    for walks in (2, 3):
        run = kgcf.fit(town.raw.folder, tmp_path / f"{walks}", changes=(*QUICK, f"space.walks={walks}"))
        spaces.append(np.array(map_arrays(run.folder.file("space.safetensors"))["vectors"]))
    assert (spaces[0] != spaces[1]).any()


@pytest.mark.parametrize(
    ("changes", "files"),
    [
        (("objective.alpha=0", "objective.beta=0"), {"treatment.safetensors"}),
        (("decoder.treatment=false",), set()),
        (("objective.beta=0",), {"treatment.safetensors", "space.safetensors", "counterfactuals.parquet"}),
        (("objective.alpha=0",), {"treatment.safetensors", "space.safetensors", "counterfactuals.parquet"}),
    ],
)
def test_stages_run_where_a_loss_needs_them(
    town: Town, tmp_path: Path, changes: tuple[str, ...], files: set[str]
) -> None:
    run = kgcf.fit(town.raw.folder, tmp_path / "run", changes=(*QUICK, *changes))
    stages = ("treatment.safetensors", "space.safetensors", "counterfactuals.parquet")
    assert {name for name in stages if run.folder.file(name).exists()} == files


@pytest.mark.parametrize(
    "change",
    [
        "training.seed=1",
        "training.remove=pair",
        "training.learning_rate=0.01",
        "objective.alpha=0.9",
        "objective.beta=0.9",
        "objective.negatives=5",
        "matching.candidates=all",
        "treatment.leave_one_out=false",
        "training.skip_unreached=false",
        "treatment.method=louvain",
    ],
)
def test_every_setting_reaches_the_weights(town: Town, tmp_path: Path, change: str) -> None:
    """Whatever is switched, the model that comes out is another one, and the same again with the same switch."""
    plain = kgcf.fit(town.raw.folder, tmp_path / "plain", changes=QUICK)
    other = kgcf.fit(town.raw.folder, tmp_path / "other", changes=(*QUICK, change))
    rows = town.raw.train[:20]
    assert (plain.score(rows) != other.score(rows)).any()


def test_removal_left_to_the_data_is_settled_by_validation(town: Town, tmp_path: Path) -> None:
    run = kgcf.fit(town.raw.folder, tmp_path / "run", changes=(*QUICK, "training.remove=auto"))
    linked = {frozenset((h, t)) for h, _, t in town.raw.train}
    share = np.mean([frozenset((h, t)) in linked for h, _, t in town.raw.valid])
    assert run.settings.training.remove == ("pair" if share < 0.01 else "triple")
    assert run.settings.training.threads == 1
    other = kgcf.fit(town.raw.folder, tmp_path / "threads", changes=[*(c for c in QUICK if "threads" not in c)])
    assert other.settings.training.threads == 1  # so small a graph is not worth a second


def test_threads_are_left_alone_where_they_do_not_pay(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = configure("default", changes=[change for change in QUICK if "threads" not in change])
    torch.set_num_threads(2)
    assert settle(settings, town.run.data).training.threads == 1
    monkeypatch.setattr("kgcf.runs.survey.steps.SLOTS_WORTH_THREADS", 1)
    assert settle(settings, town.run.data).training.threads == 2


def test_labels_of_a_file_are_those_that_training_uses(town: Town, tmp_path: Path) -> None:
    """Every second entity is red under `parent`; nobody has a label under other relations."""
    red = set(town.raw.entities[::2])
    (tmp_path / "labels.tsv").write_text("".join(f"{name}\tparent\tred\n" for name in sorted(red)))
    changes = (*QUICK, "treatment.method=file", f"treatment.path={tmp_path / 'labels.tsv'}")
    run = kgcf.fit(town.raw.folder, tmp_path / "run", changes=changes)
    rows = pq.read_table(run.folder.file("counterfactuals.parquet")).to_pylist()
    assert len(rows) == len(town.raw.train)
    for row in rows:
        ends = {row["head_label"], row["tail_label"]}
        assert row["factual_treatment"] == (row["relation_label"] == "parent" and ends <= red)
    assert 0 < sum(row["factual_treatment"] for row in rows) < len(rows)
    evidence = run.explain(*town.raw.train[0]).counterfactual
    assert evidence is not None
    assert evidence.factual_treatment == (town.raw.train[0][1] == "parent" and {*town.raw.train[0][::2]} <= red)


def test_an_opened_run_is_the_run(town: Town) -> None:
    opened = kgcf.open(town.run.folder.path)
    for name in ("train", "valid", "test"):
        mine, theirs = getattr(opened.data, name), getattr(town.run.data, name)
        assert mine.queries.tolist() == theirs.queries.tolist()
        assert sorted(mine.known.triples.tolist()) == sorted(theirs.known.triples.tolist())
        assert mine.observed.triples.tolist() == theirs.observed.triples.tolist()
    assert opened.data.notes == town.run.data.notes
    assert opened.data.name == town.run.data.name
    wanted = np.mean(reciprocal_ranks(town.train, town.raw.test, town.raw.all))
    assert opened.evaluate()["mrr"] == pytest.approx(wanted, rel=1e-9)


def test_weights_come_back_and_are_observed(tmp_path: Path) -> None:
    """Everything that is observed here is train, so that it makes no difference which of the two is asked for."""
    rows = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a"), ("a", "s", "c"), ("b", "s", "a"), ("c", "r", "b")]
    scores = []
    for name, weights in (("light", (0.5, 2.0, 1.5, 0.25, 3.0, 1.0)), ("plain", (1.0,) * 6)):
        lines = [f"{h}\t{r}\t{t}\t{weight}\n" for (h, r, t), weight in zip(rows, weights, strict=True)]
        (tmp_path / f"{name}.tsv").write_text("head\trelation\ttail\tweight\n" + "".join(lines))
        data = kgcf.read(tmp_path / f"{name}.tsv", split=SplitSettings(valid=0, test=0))
        kgcf.fit(data, tmp_path / name, preset="nbfnet", changes=(*QUICK, "training.learning_rate=1e-9"))
        opened = kgcf.open(tmp_path / name)
        assert opened.data.graph.weights is not None
        assert dict(
            zip(map(tuple, opened.data.graph.triples.tolist()), opened.data.graph.weights, strict=True)
        ) == dict(zip(map(tuple, data.graph.triples.tolist()), weights, strict=True))
        scores.append(opened.score(rows, observed="train"))
        assert opened.score(rows, observed="all") == pytest.approx(scores[-1], abs=1e-6)
    assert (np.abs(scores[0] - scores[1]) > 1e-4).any()  # the weights count


def test_names_come_back(tmp_path: Path) -> None:
    plain = dataset()
    people = Vocabulary(plain.entities.labels(), {"3": "Ann\tB.", "7": "Ann\tB.", "9": "\\n"})
    kinds = Vocabulary(plain.relations.labels(), {"friend": "is a friend of"})
    triples = plain.train.queries, plain.valid.queries, plain.test.queries
    kgcf.fit(transductive("named", people, kinds, triples), tmp_path / "run", preset="nbfnet", changes=QUICK)
    opened = kgcf.open(tmp_path / "run").data
    assert (opened.entities.names, opened.relations.names) == (people.names, kinds.names)
    assert opened.name == "named"


def test_an_empty_folder_is_taken_and_a_file_is_not(town: Town, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    kgcf.fit(town.raw.folder, tmp_path / "empty", changes=QUICK)
    assert kgcf.open(tmp_path / "empty").folder.path == tmp_path / "empty"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="exists already"):
        kgcf.fit(town.raw.folder, tmp_path / "file", changes=QUICK)
    assert (tmp_path / "file").read_text() == "mine"
    kgcf.fit(town.raw.folder, tmp_path / "deep" / "er", changes=QUICK)
    with pytest.raises(StorageError, match="is not a run"):
        kgcf.resume(tmp_path)


def test_a_damaged_run_is_not_resumed(town: Town, tmp_path: Path) -> None:
    run = kgcf.fit(town.raw.folder, tmp_path / "run", changes=QUICK)
    file = run.folder.file("entities.txt")
    file.write_text(file.read_text().replace("e3", "x3"))
    with pytest.raises(StorageError, match=r"entities\.txt is damaged"):
        kgcf.resume(tmp_path / "run")


@pytest.mark.parametrize(("limit", "seed"), [(3, 0), (3, 5), (None, 0)])
def test_a_calibration_asks_about_the_triples_it_says(town: Town, limit: int | None, seed: int) -> None:
    run = Run.open(town.run.folder.path)
    before = run.folder.file("calibration.json").read_bytes()
    done: list[int] = []
    record = run.calibrate(limit=limit, seed=seed, save=False, advance=done.append)
    assert run.folder.file("calibration.json").read_bytes() == before
    assert (record.protocol["limit"], record.protocol["seed"]) == (limit, seed)
    assert record.valid is not None
    assert record.test is not None
    for name, report in (("valid", record.valid), ("test", record.test)):
        task = getattr(run.data, name)
        asked = collect_best(run.bind(task.observed, task.entities), task, limit=limit, seed=seed)
        assert report.questions == asked.question_count
        assert report.answers == len(asked)
    assert done[0] == record.valid.questions  # then the questions of a completion, then those of test
    assert done[-1] == record.test.questions
    assert done[1] == (53 if limit is None else limit)
    assert run.calibrate(test=False, limit=limit, seed=seed, save=False).valid == record.valid
