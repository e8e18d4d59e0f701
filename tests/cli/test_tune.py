"""tune: a search is continued, never mixed with another, and not stopped by a trial that was."""

import shlex
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import typer
from numpy.typing import NDArray
from typer.testing import CliRunner

import kgcf
from kgcf.cli import search as searching
from kgcf.cli.study import Study, describe_search
from kgcf.cli.train import train_command
from kgcf.cli.train_line import train_line
from kgcf.cli.tune import tune_command
from kgcf.config import configure
from kgcf.data.dataset import transductive
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import KgcfError, SettingsError, StorageError
from kgcf.memory.trainer import MemoryTrainer
from kgcf.prediction.blending.blend import FILE as BLEND
from kgcf.prediction.blending.blend import read_blend
from kgcf.runs.folder import RunFolder
from kgcf.runs.memory_addition import add_memory, is_pending
from tests.training.tiny import TINY, dataset, write_folder

QUICK = [p for c in (*TINY, "objective.negatives=4", "training.threads=1", "training.epochs=1") for p in ("--set", c)]
SPACE = ["--search", "objective.temperature=0.5,1.0", "--search", "training.learning_rate=0.01,0.02"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny graph without test triples: the search must not miss them."""
    folder = write_folder(dataset(), tmp_path_factory.mktemp("tune") / "tiny")
    (folder / "test.txt").unlink()
    return folder


@pytest.fixture(scope="module")
def search(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search with one trial done."""
    folder = tmp_path_factory.mktemp("search") / "search"
    rows(data, folder, "--trials", "1")
    return folder


@pytest.fixture
def copy(search: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(search, tmp_path / "search"))


def rows(data: Path, folder: Path, *more: str, preset: str = "nbfnet", space: list[str] = SPACE) -> list[list[str]]:
    """Run the command and read the table; errors are raised."""
    lines = said(data, folder, *more, preset=preset, space=space).splitlines()
    return [line.split() for line in lines if line.strip()[:1].isdigit() and "trials" not in line]


def said(data: Path, folder: Path, *more: str, preset: str = "nbfnet", space: list[str] = SPACE) -> str:
    """Run the command; errors are raised."""
    app = typer.Typer()
    app.command()(tune_command)
    arguments = [str(data), "--preset", preset, "--output", str(folder), *space, *QUICK, *more]
    done = CliRunner().invoke(app, arguments, catch_exceptions=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_a_search_is_continued(data: Path, copy: Path) -> None:
    first = (copy / "trial-0" / "model.safetensors").stat().st_mtime_ns
    found = rows(data, copy, "--trials", "9")
    assert sorted(row[0] for row in found) == ["0", "1", "2", "3"]
    assert len({tuple(row[1:3]) for row in found}) == 4
    assert [float(row[3]) for row in found] == sorted((float(row[3]) for row in found), reverse=True)
    assert (copy / "trial-0" / "model.safetensors").stat().st_mtime_ns == first
    for row in found:
        config = (copy / f"trial-{row[0]}" / "config.toml").read_text()
        assert f"temperature = {row[1]} " in config
        assert f"learning_rate = {row[2]} " in config
        history = RunFolder(copy / f"trial-{row[0]}").facts()["history"]
        assert isinstance(history, dict)
        assert row[3] == f"{history['best_validation_mrr']:.4f}"


def test_trials_with_a_memory_are_ranked_by_what_they_answer(data: Path, tmp_path: Path) -> None:
    """A search of the memory's own settings tells them apart, though their paths are the same."""
    space = ["--search", "memory.epochs=1,40"]
    memory = ("enabled=on", "rank=6", "batch_size=32", "n3=0.001")
    found = rows(data, tmp_path / "s", *(p for c in memory for p in ("--set", f"memory.{c}")), space=space)
    for row in found:
        folder = RunFolder(tmp_path / "s" / f"trial-{row[0]}")
        assert row[2] == f"{read_blend(folder.file(BLEND)).figures['both']:.4f}"
    assert found[0][2] != found[1][2]


def test_trials_train_no_memory_where_none_is_searched(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are compared by paths; the command that trains the best of them trains its memory too."""
    memory = [p for c in ("enabled=on", "rank=6", "epochs=3") for p in ("--set", f"memory.{c}")]
    with monkeypatch.context() as patch:
        patch.setattr(MemoryTrainer, "run", None)
        done = said(data, tmp_path / "s", "--trials", "2", *memory)
    for number in range(2):
        folder = RunFolder(tmp_path / "s" / f"trial-{number}")
        assert read_blend(folder.file(BLEND)).reason == searching.PATHS_ALONE
        assert not is_pending(folder)
        assert kgcf.open(folder.path).recall is None
    assert searching.NO_MEMORIES in done
    line = next(line for line in done.splitlines() if line.startswith("kgcf train"))
    app = typer.Typer()
    app.command()(train_command)
    again = CliRunner().invoke(app, [*shlex.split(line)[2:], "--output", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output
    assert kgcf.open(tmp_path / "again").recall is not None
    best = f"{tmp_path / 's'}/trial-" + str(max(range(2), key=lambda n: best_mrr(tmp_path / "s" / f"trial-{n}")))
    assert f"kgcf blend {best} --memory" in done
    assert add_memory(best, tmp_path / "added").recall is not None


@pytest.mark.parametrize(
    ("more", "preset", "space", "message"),
    [
        (["--set", "training.batch_size=16"], "nbfnet", SPACE, "training.batch_size is 16 here and was 8"),
        ([], "default", SPACE, "preset is 'default' here and was 'nbfnet'"),
        ([], "nbfnet", SPACE[:2], "search is {'objective.temperature'"),
        (["--seed", "3"], "nbfnet", SPACE, "seed is 3 here and was 0"),
    ],
)
def test_another_search_is_refused(
    data: Path, search: Path, more: list[str], preset: str, space: list[str], message: str
) -> None:
    before = sorted(path.name for path in search.iterdir())
    with pytest.raises(SettingsError, match="holds another search.*Choose another --output") as caught:
        rows(data, search, *more, preset=preset, space=space)
    assert message in str(caught.value)
    assert sorted(path.name for path in search.iterdir()) == before


def test_other_data_are_refused(search: Path, tmp_path: Path) -> None:
    same_size = dataset(seed=1)
    with pytest.raises(SettingsError, match="the content of the data is another"):
        rows(write_folder(same_size, tmp_path / "tiny"), search)
    other = write_folder(dataset(), tmp_path / "other")
    with pytest.raises(SettingsError, match="data is 'other, .* here and was 'tiny,"):
        rows(other, search)


def test_other_labels_are_refused(data: Path, tmp_path: Path) -> None:
    labels, folder = tmp_path / "labels.tsv", tmp_path / "search"
    labels.write_text("e1\tx\n")
    more = ["--set", "treatment.method=file", "--set", f"treatment.path={labels}", "--trials", "1"]
    rows(data, folder, *more, preset="default")
    labels.write_text("e1\ty\n")
    with pytest.raises(SettingsError, match="the content of the label file is another"):
        rows(data, folder, *more, preset="default")


def test_a_stopped_trial_is_taken_up_again(data: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the second trial; and a folder whose making was stopped before it became a run."""

    def stop(*_: object, **__: object) -> None:
        (copy / "trial-1").mkdir()
        (copy / "trial-1" / "config.toml").write_text("[tra")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(searching, "fit", stop)
        with pytest.raises(BaseException):  # noqa: B017
            rows(data, copy, "--trials", "2")
    assert [row[0] for row in rows(data, copy, "--trials", "1")] == ["0"]
    assert sorted(row[0] for row in rows(data, copy, "--trials", "2")) == ["0", "1"]


def test_a_trial_that_was_trained_but_not_noted_is_not_trained_again(
    data: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KgcfError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(Study, "add", stop)
        with pytest.raises(KgcfError, match="stopped"):
            rows(data, copy, "--trials", "2")
    monkeypatch.setattr(searching, "fit", stop)
    assert sorted(row[0] for row in rows(data, copy, "--trials", "2")) == ["0", "1"]


def test_a_trial_that_cannot_learn_does_not_end_the_search(data: Path, tmp_path: Path) -> None:
    space = ["--search", "training.learning_rate=0.01,1e30"]
    found = rows(data, tmp_path / "search", "--set", "training.epochs=2", space=space)
    assert [row[2] for row in found][-1] == "failed"
    assert float(found[0][2]) > 0
    assert rows(data, tmp_path / "search", "--set", "training.epochs=2", space=space) == found


def test_folders_that_cannot_be_used(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="Could not write"):
        rows(data, tmp_path / "file")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "study.db").write_text("no database, but long enough to be taken for one" * 40)
    with pytest.raises(StorageError, match="could not be kept .* not a database"):
        rows(data, tmp_path / "damaged")


def test_a_search_of_another_program_is_refused(data: Path, copy: Path) -> None:
    with sqlite3.connect(copy / "study.db") as database:
        database.execute("UPDATE studies SET study_name = 'mine'")
    database.close()
    with pytest.raises(SettingsError, match="not made by this kgcf"):
        rows(data, copy)


def test_a_search_depends_on_train_validation_and_names_but_not_on_test() -> None:
    data = dataset()
    train, valid, test = (split.queries for split in data.splits)

    def checksum(
        splits: tuple[NDArray[np.int32], ...] = (train, valid, test),
        entities: Vocabulary = data.entities,
        relations: Vocabulary = data.relations,
    ) -> object:
        one, two, three = splits
        changed = transductive("tiny", entities, relations, (one, two, three))
        return describe_search(changed, "default", configure("default"), {}, 0)["data checksum"]

    others = {
        checksum((np.concatenate([train[1:], test[:1]]), valid, test)),
        checksum((train, test, test)),
        checksum(entities=Vocabulary([f"x{i}" for i in range(40)])),
        checksum(relations=Vocabulary(["grandparent", "parent", "friend"])),
    }
    assert len(others | {checksum()}) == 5
    assert checksum((train, valid, test[:2])) == checksum()


def test_the_best_trial_comes_with_the_command_that_trains_it(data: Path, copy: Path, tmp_path: Path) -> None:
    """The command is run, and gives the settings of the best trial."""
    done = said(data, copy, "--trials", "2", "--set", "training.seed=0")
    best = max(range(2), key=lambda n: best_mrr(copy / f"trial-{n}"))
    line = next(line for line in done.splitlines() if line.startswith("kgcf train"))
    assert f"The best trial is the run {copy / f'trial-{best}'}" in done
    assert "--seed 0 " in line
    app = typer.Typer()
    app.command()(train_command)
    again = CliRunner().invoke(app, [*shlex.split(line)[2:], "--output", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output
    assert RunFolder(tmp_path / "again").settings() == RunFolder(copy / f"trial-{best}").settings()
    assert best_mrr(tmp_path / "again") == best_mrr(copy / f"trial-{best}")


def test_every_trial_has_a_time_and_the_command_says_what_was_chosen_for_it(data: Path, tmp_path: Path) -> None:
    """The choice depends on how busy the machine was, so the command repeats the choice and not the time."""
    space = ["--search", "objective.temperature=0.5,1.0"]
    done = said(data, tmp_path / "search", "--trials", "2", "--time", "10m", space=space)
    for number in range(2):
        survey = RunFolder(tmp_path / "search" / f"trial-{number}").survey()
        assert survey is not None
        assert survey["seconds"] == 600
    line = shlex.split(next(line for line in done.splitlines() if line.startswith("kgcf train")))
    assert line[line.index("--time") + 1] == "none"
    chosen = {"encoder.layers=2", "objective.negatives=4", "training.budget=none", "training.threads=1"}
    assert chosen <= set(line)
    with pytest.raises(SettingsError, match="time is 'auto' here and was '10m'"):
        rows(data, tmp_path / "search", space=space)


def test_a_trial_that_does_not_fit_its_time_does_not_end_the_search(data: Path, tmp_path: Path) -> None:
    done = said(data, tmp_path / "search", "--trials", "1", "--time", "0.1s")
    assert "failed" in done
    assert "A time of 0.1 s is too little" in done


def best_mrr(path: Path) -> float:
    history = RunFolder(path).facts()["history"]
    assert isinstance(history, dict)
    return float(history["best_validation_mrr"])


def test_a_command_has_what_is_not_default_and_survives_a_shell() -> None:
    options = {"--preset": "fast", "--header": False, "--names": None, "--strip": True, "--comment": "# ", "--seed": 0}
    more = {"--split-seed": 0, "--device": "cpu", "--allow-inverse-leak": False}
    line = train_line("my file.tsv", {**options, **more}, ["a.b=c d"])
    assert shlex.split(line) == [
        *("kgcf", "train", "my file.tsv", "--preset", "fast", "--no-header", "--strip", "--comment", "# "),
        *("--seed", "0", "--set", "a.b=c d"),
    ]
