"""A run made of others is there as a whole or not at all, whenever it is stopped."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kgcf.errors import StorageError
from kgcf.runs.copying import assembled, copy_run
from kgcf.runs.ensemble import companion_folder
from kgcf.runs.folder import LOCK, RunFolder

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the killed processes are forked"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
PARTS = ("config.toml", "model.safetensors", "data.json")


@pytest.fixture
def finished(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "finished")
    folder.path.mkdir()
    for name in PARTS:
        folder.file(name).write_text(name)
    folder.seal()
    return folder


def put_together(finished: RunFolder, target: Path) -> None:
    """As `kgcf blend` does it: a copy, and another one in it."""
    with assembled(target) as hidden:
        copy_run(finished, hidden)
        copy_run(finished, companion_folder(hidden, 1))
        (hidden / "ensemble.json").write_text("{}")
        RunFolder(hidden).seal()


def killed(work: Callable[[], None], call: int) -> bool:
    """Whether a process that does this work ends before the n-th file is copied, as by kill -9."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    usual, calls = shutil.copyfile, [0]

    def copy(source: Path, target: Path) -> None:
        calls[0] += 1
        if calls[0] == call:
            os._exit(9)
        usual(source, target)

    shutil.copyfile = copy  # type: ignore[assignment]
    work()
    os._exit(0)


def test_a_kill_leaves_no_half_run_and_the_next_attempt_is_whole(finished: RunFolder, tmp_path: Path) -> None:
    target = tmp_path / "new"
    for call in range(1, 100):
        if not killed(lambda: put_together(finished, target), call):
            break
        assert not target.exists()
    assert call == 2 * (len(PARTS) + 1) + 1
    names = {entry.name for entry in target.iterdir()}
    assert names == {*PARTS, "run.json", "ensemble.json", LOCK, companion_folder(target, 1).parent.name}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["finished", "new"]


def test_what_fails_leaves_nothing_and_what_is_there_stays(finished: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), assembled(tmp_path / "new") as hidden:
        copy_run(finished, hidden)
        raise KeyboardInterrupt
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(StorageError, match="exists already"):
        put_together(finished, tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["finished", "mine"]
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
