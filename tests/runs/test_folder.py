"""Run folders: complete, portable, and refused when something is wrong, with nothing lost."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from kgcf.data.source import read
from kgcf.data.splitting import SplitSettings
from kgcf.errors import DataError, KgcfError, StorageError
from kgcf.pipeline import Execution, fit, open_run, resume
from kgcf.runs.folder import RunFolder
from kgcf.runs.run import Run
from kgcf.storage import TEMPORARY
from kgcf.training.distributed import World
from tests.training.tiny import TINY, dataset, write_folder

SMALL = (*TINY, "objective.negatives=4", "space.walks=2", "training.threads=1", "training.epochs=1")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return fit(read(write_folder(dataset(), folder / "tiny")), folder / "run", changes=SMALL)


def test_commands_that_are_advised_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "my run"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(StorageError) as refused:
        RunFolder(folder).check_free()
    assert str(refused.value).endswith(f"kgcf resume '{folder}'")


def test_a_run_is_complete_and_portable(run: Run, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(run.folder.path, moved)
    (moved / "checkpoint.safetensors").unlink()
    opened = open_run(moved)
    assert opened.settings == run.settings
    assert opened.data.entities == run.data.entities
    for name in ("train", "valid", "test"):
        assert (getattr(opened.data, name).queries == getattr(run.data, name).queries).all()
        assert getattr(opened.data, name).known.fingerprint == getattr(run.data, name).known.fingerprint
    question = [("e0", "parent", "e5"), ("e3", "friend", "e9")]
    assert opened.score(question).tolist() == run.score(question).tolist()
    assert opened.evaluate("test")["mrr"] == run.evaluate("test")["mrr"]


def test_labels_with_tabs_and_backslashes_survive(tmp_path: Path) -> None:
    rows = [("a\tb", "r", "c\\n"), ("c\\n", "r", "d\ne"), ("d\ne", "r", "a\tb")]
    data = read(rows, split=SplitSettings(valid=0, test=0))
    folder = RunFolder(tmp_path / "odd")
    from kgcf.config import configure

    folder.create(data, configure("nbfnet"), "nbfnet")
    assert folder.dataset().entities.labels() == data.entities.labels()


def test_an_existing_folder_is_not_touched(run: Run) -> None:
    before = sorted(p.name for p in run.folder.path.iterdir())
    with pytest.raises(StorageError, match="exists already. Nothing was changed"):
        fit(run.data, run.folder.path, changes=SMALL)
    assert sorted(p.name for p in run.folder.path.iterdir()) == before


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: (p / "run.json").unlink(), "is not a run"),
        (lambda p: (p / "run.json").write_text("{"), "run.json is damaged"),
        (lambda p: (p / "model.safetensors").unlink(), "lacks model.safetensors"),
        (lambda p: (p / "graph.safetensors").write_bytes(b"x" * 99), "graph.safetensors is damaged: its checksum"),
        (lambda p: (p / "config.toml").write_text("[training]\n"), "config.toml is damaged"),
    ],
)
def test_damaged_runs_are_refused(run: Run, tmp_path: Path, spoil: object, message: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run.folder.path, copy)
    assert callable(spoil)
    spoil(copy)
    with pytest.raises(StorageError, match=message):
        open_run(copy)


def test_a_newer_format_is_refused(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run.folder.path, copy)
    facts = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(facts | {"format": 99, "kgcf": "9.9"}))
    with pytest.raises(StorageError, match=r"written by kgcf 9.9 in format 99.*Upgrade kgcf"):
        open_run(copy)


def test_no_train_triples_and_no_validation(tmp_path: Path) -> None:
    data = dataset()
    empty = np.zeros((0, 3), dtype=np.int32)
    from kgcf.data.dataset import transductive
    from kgcf.data.vocabulary import Vocabulary

    nothing = transductive("empty", Vocabulary.numbered(3), Vocabulary(["r"]), (empty, empty, empty))
    with pytest.raises(DataError, match="no train triples"):
        fit(nothing, tmp_path / "unused")
    assert len(data.valid)


def test_training_without_validation_keeps_the_last_weights(tmp_path: Path) -> None:
    data = read([(f"e{i}", "r", f"e{(i * 3 + 1) % 20}") for i in range(20)], split=SplitSettings(valid=0, test=0))
    finished = fit(data, tmp_path / "run", preset="nbfnet", changes=(*SMALL, "encoder.layers=3"))
    assert finished.folder.file("model.safetensors").is_file()
    with pytest.raises(KgcfError, match="no test triples"):
        finished.evaluate("test")


def test_resuming_a_finished_run_changes_nothing(run: Run) -> None:
    before = run.score([("e0", "parent", "e5")]).tolist()
    assert resume(run.folder.path).score([("e0", "parent", "e5")]).tolist() == before


def test_resuming_deletes_what_a_kill_left_half_written(run: Run, tmp_path: Path) -> None:
    """Files of our own and those that safetensors writes before it renames them; nothing of somebody else's."""
    copy = tmp_path / "copy"
    shutil.copytree(run.folder.path, copy)
    left = [f".model.safetensors.abc{TEMPORARY}", ".tmp0PfUe9", ".tmp", ".tmp0PfUe9.notes"]
    for name in left:
        (copy / name).write_text("x")
    resume(copy)
    assert [(copy / name).exists() for name in left] == [False, False, True, True]


def test_another_graph_with_the_same_relations(run: Run) -> None:
    rows = [("anna", "parent", "ben"), ("ben", "parent", "cleo"), ("cleo", "friend", "anna")]
    answers = run.predict("anna", "grandparent", graph=rows, top=2)
    assert {a.tail for a in answers} <= {"anna", "ben", "cleo"}
    with pytest.raises(KgcfError, match="no relation called 'uncle'"):
        run.predict("anna", "parent", graph=[("anna", "uncle", "ben")])
    other = read(
        rows * 1 + [("dora", "parent", "anna"), ("anna", "grandparent", "cleo")], split=SplitSettings(0.2, 0.2)
    )
    assert 0 < run.evaluate("test", data=other)["mrr"] <= 1


def test_results_of_other_data_are_never_the_runs_own(run: Run) -> None:
    run.evaluate("test", save=True)
    own = run.folder.file("results.json").read_bytes()
    other = read([("a", "parent", "b"), ("b", "parent", "c"), ("a", "grandparent", "c")], split=SplitSettings(0, 0.4))
    for asked in ({"data": other}, {"split": "valid"}, {"limit": 2}):
        with pytest.raises(KgcfError, match="Only the whole test split of the run's own data is saved"):
            run.evaluate(save=True, **asked)
    assert run.folder.file("results.json").read_bytes() == own
    assert run.evaluate("test", data=other).protocol["dataset"] != run.evaluate("test").protocol["dataset"]


def test_fit_writes_a_log(run: Run) -> None:
    lines = run.folder.file("log.jsonl").read_text().splitlines()
    history = run.folder.facts()["history"]
    assert isinstance(history, dict)
    assert [json.loads(line) for line in lines] == history["epochs"]
    assert len(lines) == 1


def test_other_processes_take_what_the_leader_settled(run: Run, tmp_path: Path) -> None:
    """Here the other process would settle other values; a rank above 0 alone exchanges nothing and writes nothing."""
    copy = Path(shutil.copytree(run.folder.path, tmp_path / "copy"))
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    other = fit(run.data, copy, changes=("training.threads=3",), execution=Execution(world=World(1, 1)))
    assert other.settings == run.settings
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


def test_an_inductive_run_keeps_all_truths_of_both_graphs(tmp_path: Path) -> None:
    for name, rows in {
        "g/train": "a\tr\tb\nb\ts\tc\nc\tr\ta\n", "g/valid": "a\ts\tc\n", "g/test": "c\tr\tb\n",
        "g_ind/train": "u\ts\tv\n", "g_ind/valid": "v\tr\tu\n", "g_ind/test": "u\tr\tv\n",
    }.items():  # fmt: skip
        path = tmp_path / f"{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(rows)
    data = read(tmp_path / "g")
    finished = fit(data, tmp_path / "run", preset="nbfnet", changes=SMALL)
    opened = open_run(finished.folder.path).data
    for name in ("valid", "test"):
        before, after = getattr(data, name), getattr(opened, name)
        assert sorted(map(tuple, after.known.triples.tolist())) == sorted(map(tuple, before.known.triples.tolist()))
        assert after.observed.fingerprint == before.observed.fingerprint
        assert after.entities == before.entities
