"""Baselines as runs: trained, stopped, resumed, opened, asked; like KGCF's in everything that a user sees."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import typer
from typer.testing import CliRunner

import kgcf
from kgcf.baselines.contract import Baseline
from kgcf.cli.train import train_command
from kgcf.config import configure
from kgcf.errors import DataError, KgcfError, KgcfWarning, SettingsError, StorageError, TrainingError
from kgcf.pipeline import Execution, resume
from kgcf.runs.any_model import new_baseline
from kgcf.runs.run import Run
from kgcf.training.baseline_loop import BaselineTrainer
from kgcf.training.loop import Listener
from tests.training.tiny import dataset, write_folder

CHANGES = {
    "transe": ("training.epochs=4", "training.batch_size=16", "baseline.dimension=8", "baseline.negatives=4"),
    "compgcn-conve": ("training.epochs=4", "training.batch_size=16", "baseline.dimension=16", "baseline.filters=2"),
    "drum": ("training.epochs=3", "baseline.hidden=8", "baseline.rank=2"),
    "pra": ("baseline.walks=20",),
}  # one of each way of training: negatives, all tails with batch norms, own steps, a regression


@dataclass
class Interrupting(Listener):
    """Presses Ctrl-C in the middle of an epoch."""

    epoch_number: int
    heard: list[float] = field(default_factory=list)

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        assert 0 < done <= total
        self.heard.append(means["factual"])
        if epoch == self.epoch_number and len(self.heard) > 1:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Runs on the tiny graph, each trained once."""
    done: dict[str, Run] = {}

    def trained(name: str) -> Run:
        if name not in done:
            folder = tmp_path_factory.mktemp(name) / "run"
            done[name] = kgcf.fit(dataset(), folder, model=name, changes=CHANGES.get(name, ()), seed=5)
        return done[name]

    return trained


@pytest.mark.parametrize("name", [*CHANGES, "frequency"])
def test_a_run_opens_with_the_same_scores_and_answers_everything(name: str, train: Callable[[str], Run]) -> None:
    run = train(name)
    again = kgcf.open(run.folder.path)
    asked = np.arange(6), np.array([0, 1, 2, 3, 4, 5])
    first, second = (one.observe().scorer.score_tails(*asked) for one in (run, again))
    assert np.array_equal(first, second)
    result = again.evaluate("test", save=True)
    assert result.protocol["model"] == name
    assert result.protocol["settings"]["baseline"]["model"] == name
    assert again.calibration is not None
    best = again.predict("3", "parent", top=4)
    said = [answer.logit for answer in best if answer.logit is not None]
    assert said == sorted(said, reverse=True)
    assert len(again.predict("3", tail="9", relation=None)) == 3
    for every_entity in (False, True):
        links = again.complete("grandparent", top=3, every_entity=every_entity)
        assert len(links) == 3
        assert all(link.relation == "grandparent" and not link.known for link in links)
    assert again.score([("3", "parent", "9")]).shape == (1,)
    assert name in repr(again)


@pytest.mark.parametrize("name", ["transe", "compgcn-conve", "drum"])
def test_a_stopped_run_goes_on_to_the_same_weights(name: str, train: Callable[[str], Run], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        kgcf.fit(
            dataset(),
            tmp_path / "run",
            model=name,
            changes=CHANGES[name],
            seed=5,
            execution=Execution(Interrupting(1)),
        )
    with pytest.raises(StorageError, match="has no trained model yet"):
        kgcf.open(tmp_path / "run")
    resumed = resume(tmp_path / "run")
    files = [safetensors.numpy.load_file(run.folder.file("model.safetensors")) for run in (train(name), resumed)]
    assert files[0].keys() == files[1].keys()
    for key in files[0]:
        assert np.array_equal(files[0][key], files[1][key]), key
    lines = [json.loads(line) for line in resumed.folder.file("log.jsonl").read_text().splitlines()]
    log = [line for line in lines if "epoch" in line]  # a slow machine also writes a line per minute
    assert [entry["epoch"] for entry in log] == list(range(1, len(log) + 1))
    assert len(log) == len(train(name).folder.history())


def test_another_seed_gives_other_weights(train: Callable[[str], Run], tmp_path: Path) -> None:
    other = kgcf.fit(dataset(), tmp_path / "run", model="drum", changes=CHANGES["drum"], seed=6)
    ours, theirs = (next(iter(run.weights.parameters())) for run in (train("drum"), other))
    assert not np.allclose(ours.detach().numpy(), theirs.detach().numpy())


def test_the_best_epoch_is_kept_and_patience_ends_the_training() -> None:
    scores = iter([0.1, 0.5, 0.4, 0.3, 0.9])
    settings = configure(baseline="transe", changes=["training.epochs=5", "training.patience=2"])
    model = new_baseline(settings, dataset().graph)
    kept: list[np.ndarray] = []

    def validate() -> float:
        kept.append(next(iter(model.parameters())).detach().numpy().copy())
        return next(scores)

    progress = BaselineTrainer(model, settings.training, validate).run()
    assert (progress.best, progress.best_epoch, len(progress.history)) == (0.5, 2, 4)
    assert np.array_equal(next(iter(model.parameters())).detach().numpy(), kept[1])
    assert not np.array_equal(kept[1], kept[3])


class Clock:
    """A time that passes with every look at it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: float) -> None:
        self.now, self.step = 0.0, step
        monkeypatch.setattr("kgcf.training.baseline_loop.time.monotonic", self.look)

    def look(self) -> float:
        self.now += self.step
        return self.now


def test_no_epoch_begins_that_would_end_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = configure(baseline="frequency", changes=["training.epochs=50"])
    model = new_baseline(settings, dataset().graph)
    Clock(monkeypatch, 1.0)
    trainer = BaselineTrainer(model, settings.training, lambda: 0.5, seconds=20.0, following=2.0)
    history = trainer.run().history
    each = history[0]["seconds"] + history[0]["validation_seconds"]
    assert 1 < len(history) < 50
    after = 2 * history[-1]["validation_seconds"]
    assert len(history) * each + after <= 20.0
    assert (len(history) + 1) * each + after > 20.0


def test_without_validation_a_share_of_the_time_is_kept_for_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = configure(baseline="frequency", changes=["training.epochs=500"])
    Clock(monkeypatch, 1.0)
    trainer = BaselineTrainer(new_baseline(settings, dataset().graph), settings.training, None, seconds=100.0)
    assert 60.0 < sum(entry["seconds"] for entry in trainer.run().history) <= 70.0


def test_a_time_counts_from_the_start_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = Execution(started=time.monotonic() - 50.0)
    with pytest.raises(SettingsError, match="A time of 40 s is over before training begins: reading and loading took"):
        kgcf.fit(dataset(), tmp_path / "run", model="frequency", time="40s", execution=late)
    assert not (tmp_path / "run").exists()

    def tell(trainer: BaselineTrainer) -> None:
        assert trainer.seconds is not None
        raise RuntimeError(f"{20.0 < trainer.seconds <= 40.0}")

    monkeypatch.setattr(BaselineTrainer, "run", tell)
    with pytest.raises(RuntimeError, match="True"):
        kgcf.fit(dataset(), tmp_path / "run", model="frequency", time="90s", execution=late)


def test_an_epoch_is_broken_off_where_it_would_last_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = configure(baseline="drum", changes=["training.epochs=9", "training.batch_size=2", "baseline.hidden=4"])
    model = new_baseline(settings, dataset().graph)
    before = next(iter(model.parameters())).detach().clone()
    Clock(monkeypatch, 1.0)
    with pytest.warns(KgcfWarning, match="The time was up within epoch 1: it was broken off after"):
        progress = BaselineTrainer(model, settings.training, lambda: 0.5, seconds=20.0).run()
    assert progress.finished
    assert len(progress.history) == 1
    assert 5 < progress.steps < 20  # of many more that an epoch has
    assert 0 < progress.history[0]["epoch_share"] < 0.5
    assert not np.array_equal(next(iter(model.parameters())).detach().numpy(), before.numpy())


def test_a_run_says_that_the_time_broke_its_epoch_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the terminal, in the log, also after a resume, and in the protocol of its results."""
    data, folder = write_folder(dataset(), tmp_path / "tiny"), tmp_path / "run"
    monkeypatch.setattr("kgcf.training.baseline_loop._UNKNOWN", 1.0)  # nothing is left for training
    options = ["--model", "drum", "--time", "90s", "--set", "training.batch_size=2", "--set", "baseline.hidden=4"]
    app = typer.Typer()
    app.command()(train_command)
    done = CliRunner().invoke(app, [str(data), "--output", str(folder), *options])
    assert done.exit_code == 0, done.output
    assert "Warning: The time was up within epoch 1: it was broken off after 1 of " in done.output
    kgcf.resume(folder)
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["warning"][:20] for line in lines if "warning" in line] == ["The time was up with"]
    (epoch,) = json.loads((folder / "results.json").read_text())["protocol"]["training"]["epochs"]
    assert 0 < epoch["epoch_share"] < 0.1
    assert epoch == lines[-1]


def test_a_loss_that_is_no_number_stops_with_advice(tmp_path: Path) -> None:
    changes = ["training.learning_rate=1e30", "training.epochs=30", "baseline.dimension=4"]
    with pytest.raises(TrainingError, match="loss became nan in epoch .* Lower training.learning_rate"):
        kgcf.fit(dataset(), tmp_path / "run", model="distmult", changes=changes)


def test_vectors_know_their_entities_only_and_paths_know_any(train: Callable[[str], Run], tmp_path: Path) -> None:
    known = tmp_path / "known.tsv"
    known.write_text("9\tparent\t3\n3\tparent\t7\n")
    run = train("transe")
    found = run.observe(known)
    ids = [run.data.entities.id(label, "entity") for label in found.entities.labels()]
    wanted = run.observe().scorer.score_tails(np.array([9]), np.array([0]))[0, ids]
    assert np.allclose(found.scorer.score_tails(np.array([0]), np.array([0]))[0], wanted)
    new = tmp_path / "new.tsv"
    new.write_text("anna\tparent\tben\nben\tparent\tcleo\n")
    with pytest.raises(DataError, match="'anna' for instance.*use a model that reads paths"):
        run.predict("anna", "grandparent", graph=new)
    assert train("drum").predict("anna", "grandparent", graph=new)[0].tail in ("ben", "cleo")


def test_a_known_triple_is_hidden_from_its_own_score(train: Callable[[str], Run]) -> None:
    run = train("drum")
    head, _, tail = run.data.graph.triples[0].tolist()
    graph = run.data.test.known.without([run.data.graph.triples[0]])
    alone = run.bind(graph, run.data.entities).scorer.score_tails(np.array([head]), np.array([0]))[0, tail]
    assert run.score([(str(head), "parent", str(tail))])[0] == pytest.approx(alone)


def test_explaining_is_refused_with_a_reason(train: Callable[[str], Run]) -> None:
    with pytest.raises(SettingsError, match="holds the model 'transe', which has no paths to explain"):
        train("transe").explain("3", "parent", "9")
    with pytest.raises(SettingsError, match="no paths"):
        train("transe").model.encoder  # noqa: B018


def test_impossible_shapes_are_sentences(tmp_path: Path) -> None:
    for model, change, said in (
        ("rgcn-transe", "baseline.blocks=7", "cannot be divided into 7 equal blocks"),
        ("conve", "baseline.dimension=7", "does not fit into the image"),
    ):
        with pytest.raises(SettingsError, match=said):
            kgcf.fit(dataset(), tmp_path / "run", model=model, changes=[change])
        assert not (tmp_path / "run").exists()


def test_a_folder_in_use_and_data_without_triples_are_refused(train: Callable[[str], Run], tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="exists already"):
        kgcf.fit(dataset(), train("pra").folder.path, model="pra")
    folder = write_folder(dataset(), tmp_path / "data")
    (folder / "train.txt").write_text("")
    with pytest.raises(KgcfError):
        kgcf.fit(folder, tmp_path / "run", model="transe")
    assert not (tmp_path / "run" / "run.json").exists()


def test_all_weights_are_in_the_run(train: Callable[[str], Run]) -> None:
    run = train("compgcn-conve")
    assert isinstance(run.weights, Baseline)
    saved = safetensors.numpy.load_file(run.folder.file("model.safetensors"))
    norms = [name for name, _ in run.weights.named_buffers() if name.endswith("running_mean")]
    assert norms
    assert all(name in saved and saved[name].any() for name in norms)
