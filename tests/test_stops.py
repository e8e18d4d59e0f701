"""A stop must never brick a run: kills and full disks at every write, two trainings at once, whole processes."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgcf.config import configure
from kgcf.errors import StorageError
from kgcf.pipeline import fit, open_run, resume
from kgcf.runs.folder import CREATED, LOCK, RunFolder
from kgcf.runs.settling import settle
from tests.training.tiny import TINY, dataset

SMALL = (*TINY, "objective.negatives=4", "space.walks=2", "training.threads=1", "training.epochs=1")
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the stopped processes are forked"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),  # the children compute nothing
]


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: hundreds of trainings sync every file that they write."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="kgcf-stops-") as name:
        yield Path(name)


def stop(folder: Path, *ways: str) -> dict[str, dict[str, int]]:
    """What `tests.stopping` says of ways to stop; nothing may be wrong after any of them."""
    here = str(Path(__file__).parent.parent)
    execution = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([here, *sys.path])}
    command = [sys.executable, "-m", "tests.stopping", str(folder), *ways]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=execution, timeout=7200)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    print({way: (one["tried"], one["stopped"]) for way, one in found.items()})
    assert {way: one["wrong"] for way, one in found.items() if one["wrong"]} == {}
    return found


def test_a_stop_at_any_moment_resumes_to_the_same_weights(quick_folder: Path) -> None:
    """Kills at every other write and between lines, real ones at random, a disk that is full, pretended and real."""
    found = stop(quick_folder, "calls:2", "lines:250", "random:5", "full:4", "disk:4")
    for way, least in {"calls": 100, "lines": 10, "full": 10}.items():
        assert found[way]["stopped"] == found[way]["tried"] >= least
    assert found["random"]["stopped"] >= 2
    assert found["disk"]["tried"] == 0 or found["disk"]["stopped"] >= 5


@pytest.mark.slow
@pytest.mark.parametrize("way", ["calls:1", "lines:5", "random:300", "full:1", "disk:1"])
def test_many_more_stops(quick_folder: Path, way: str) -> None:
    stop(quick_folder, way)


def test_what_creation_writes_is_known_to_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.alone(new=True):
        folder.create(dataset(), configure(changes=SMALL), "default", {"seconds": 1.0})
    names = {entry.name for entry in folder.path.iterdir()}
    assert names <= {*CREATED, LOCK}  # a name that is missing there would make a stopped creation a used folder


def test_a_stopped_creation_is_said_by_resume_and_begun_again_by_train(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    for name in (LOCK, "config.toml", "new_graph.safetensors", ".graph.safetensors.x1.part"):
        (path / name).write_text("half")
    with pytest.raises(
        StorageError,
        match=r"was stopped before its training began, or learned nothing. Start it again with: kgcf train",
    ):
        resume(path)
    run = fit(dataset(), path, changes=SMALL)
    assert not run.folder.file("new_graph.safetensors").exists()
    assert [p.name for p in path.iterdir() if p.name.endswith(".part")] == []
    open_run(path)


@pytest.mark.parametrize("names", [["notes.txt"], [LOCK, "notes.txt"], [LOCK, "run.json"], ["config.toml"]])
def test_a_folder_with_anything_else_in_it_is_not_touched(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(StorageError, match="exists already. Nothing was changed"):
        fit(dataset(), tmp_path, changes=SMALL)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    assert all(p.read_text() == "mine" for p in tmp_path.iterdir())


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    """The first one is a real process that is killed: the system lets go of its lock."""
    folder = RunFolder(tmp_path / "run")
    with folder.alone(new=True):
        folder.create(dataset(), settle(configure(changes=SMALL), dataset()), "default")
    ready, go = os.pipe()
    child = os.fork()
    if not child:
        with folder.alone():
            os.write(go, b"x")
            os.read(os.pipe()[0], 1)
    os.read(ready, 1)
    try:
        before = sorted(p.name for p in folder.path.iterdir())
        with pytest.raises(StorageError, match="Another process is training in .*run. Wait until it ends"):
            resume(folder.path)
        assert sorted(p.name for p in folder.path.iterdir()) == before
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert resume(folder.path).folder.sealed("model.safetensors")


def test_of_many_trainings_that_begin_at_once_one_succeeds(quick_folder: Path) -> None:
    data, settings = dataset(), configure(changes=SMALL)
    for attempt in range(30):
        path = quick_folder / str(attempt)
        start, children = os.pipe(), []
        for _ in range(4):
            child = os.fork()
            if not child:
                os._exit(_create_when_told(path, start, data, settings))
            children.append(child)
        os.close(start[0])
        os.close(start[1])  # the pipe ends for all of them
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert sorted(codes) == [0, 3, 3, 3]
        RunFolder(path).check()


def _create_when_told(path: Path, start: tuple[int, int], data: object, settings: object) -> int:
    os.close(start[1])
    os.read(start[0], 1)
    folder = RunFolder(path)
    try:
        with folder.alone(new=True):
            folder.create(data, settings, "default")  # type: ignore[arg-type]
    except StorageError:
        return 3
    except BaseException:
        return 4
    return 0


def test_what_run_json_seals_is_never_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no stop can come between a file and its checksum."""
    written: list[tuple[str, bool]] = []
    usual = os.replace

    def replace(source: object, target: object) -> None:
        folder, name = Path(str(target)).parent, Path(str(target)).name
        sealed = (folder / "run.json").is_file() and RunFolder(folder).sealed(name)
        written.append((name, sealed))
        usual(str(source), str(target))

    monkeypatch.setattr(os, "replace", replace)
    run = fit(dataset(), tmp_path / "run", changes=SMALL)
    run.evaluate("test", save=True)
    run.folder.file("checkpoint.safetensors").unlink()
    resume(run.folder.path)  # a finished run is not trained again, even without its checkpoint
    assert {"model.safetensors", "history.json", "run.json", "results.json"} <= {name for name, _ in written}
    assert [name for name, sealed in written if sealed] == []


def test_a_model_that_is_not_sealed_is_not_a_finished_run(tmp_path: Path) -> None:
    whole = fit(dataset(), tmp_path / "run", changes=SMALL)
    facts = json.loads(whole.folder.file("run.json").read_text())
    del facts["sha256"]["model.safetensors"]
    whole.folder.file("run.json").write_text(json.dumps(facts))
    with pytest.raises(StorageError, match="no trained model yet. Finish its training with: kgcf resume"):
        open_run(whole.folder.path)
    resume(whole.folder.path)
    open_run(whole.folder.path)


def test_a_log_that_was_cut_is_whole_again_after_resume(tmp_path: Path) -> None:
    run = fit(dataset(), tmp_path / "run", changes=SMALL)
    log = run.folder.file("log.jsonl")
    log.write_text('{"epoch": 1, "sec')
    resume(run.folder.path)
    assert [json.loads(line) for line in log.read_text().splitlines()] == run.folder.history()
