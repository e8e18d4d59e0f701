"""Compiled code finds a place to be kept, or does without one; a read-only installation works."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba.core.caching import FunctionCache

from kgcf.machine import compiled

ROOT = Path(__file__).parent.parent

# All that others wrote is imported before the user changes: nobody may be unable to read where Python is installed.
AS_NOBODY = """
import os, sys
import cmath
import numba
import numpy as np
import kgcf.data.graph
numba.njit(lambda values: np.sort(values)[:1].sum())(np.arange(3))
for name in [name for name in sys.modules if name.split(".")[0] == "kgcf"]:
    del sys.modules[name]
sys.path.insert(0, sys.argv[1])
os.environ["HOME"] = "/nonexistent"
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
import kgcf.data.graph
assert kgcf.__file__.startswith(sys.argv[1])
graph = kgcf.data.graph.KnowledgeGraph.build(np.array([[0, 0, 1], [1, 0, 2]]), 3, 1)
assert graph.tails(0, 0).tolist() == [1]
print(kgcf.data.graph.__file__)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter and read."""
    folder = Path(tempfile.mkdtemp(prefix="kgcf-open-"))
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_installation_without_a_home_works_with_one_note(open_folder: Path) -> None:
    installed, temporary = open_folder / "installed", open_folder / "temporary"
    shutil.copytree(ROOT / "src" / "kgcf", installed / "kgcf", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (installed, *installed.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    temporary.mkdir()
    temporary.chmod(0o1777)
    execution = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    execution |= {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", AS_NOBODY, str(installed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=execution, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))
    (note,) = done.stderr.splitlines()
    (folder,) = temporary.iterdir()
    assert note.startswith(f"note: compiled code is kept in {folder}")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.rglob("*.nbc"))


def doubled(x: float) -> float:
    return 2 * x


@pytest.fixture
def fresh_notes() -> Iterator[None]:
    compiled._notice.cache_clear()
    compiled.temporary_cache.cache_clear()
    yield
    compiled._notice.cache_clear()
    compiled.temporary_cache.cache_clear()


@pytest.mark.usefixtures("fresh_notes")
def test_without_any_place_kernels_are_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(self: object, function: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    def no_folder() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(FunctionCache, "__init__", nowhere)
    monkeypatch.setattr(tempfile, "gettempdir", no_folder)
    for _ in range(2):
        assert compiled.kernel(doubled)(2.0) == 4.0
    assert capsys.readouterr().err.splitlines() == [
        "note: there is no folder to keep compiled code in, so that every start is slow; NUMBA_CACHE_DIR names one."
    ]


@pytest.mark.usefixtures("fresh_notes")
def test_a_full_disk_or_a_damaged_file_is_no_reason_not_to_compute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(self: object, sig: object, data: object) -> None:
        raise OSError(28, "No space left on device")

    def damaged(self: object, sig: object, context: object) -> None:
        raise EOFError("Ran out of input")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    monkeypatch.setattr(FunctionCache, "load_overload", damaged)
    assert compiled.kernel(doubled)(2.0) == 4.0
    assert capsys.readouterr().err.count("cannot be kept in") == 1


@pytest.mark.usefixtures("fresh_notes")
def test_a_folder_that_others_may_write_to_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = tmp_path / f"kgcf-compiled-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    found = compiled.temporary_cache()
    assert found is not None
    assert found != planted
    assert stat.S_IMODE(found.stat().st_mode) == 0o700


# A kernel of one file that calls a kernel of another, in a package of their own beside the copied one.
CALLED_ELSEWHERE = """
import sys
sys.path.insert(0, sys.argv[1])
from kgcf.data.outer import tripled
from kgcf.machine import compiled
assert compiled.__file__.startswith(sys.argv[1])
print(tripled(1.0), sum(tripled.stats.cache_hits.values()))
"""
INNER = "from kgcf.machine.compiled import kernel\n\n\n@kernel\ndef scaled(x):\n    return {factor} * x\n"
OUTER = """
from kgcf.data.inner import scaled
from kgcf.machine.compiled import kernel


@kernel
def tripled(x):
    return scaled(x)
"""


def test_the_cache_follows_the_sources_of_all_kernels(tmp_path: Path) -> None:
    """An inner kernel in another file changes, and so does what its caller says; nobody deletes anything."""
    package = tmp_path / "kgcf"
    for part in ("__init__.py", "data/__init__.py", "machine/__init__.py", "machine/compiled.py"):
        (package / part).parent.mkdir(parents=True, exist_ok=True)
        text = "" if part.endswith("__init__.py") else (ROOT / "src" / "kgcf" / part).read_text()
        (package / part).write_text(text)
    (package / "data" / "outer.py").write_text(OUTER)
    found = []
    for factor in (3, 3, 4):
        (package / "data" / "inner.py").write_text(INNER.format(factor=factor))
        command = [sys.executable, "-c", CALLED_ELSEWHERE, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.split())
        (kept,) = (package / "data" / "__pycache__").glob("kernels-*")  # what earlier sources made is removed
        assert list(kept.glob("*.nbc"))
    assert found == [["3.0", "0"], ["3.0", "1"], ["4.0", "0"]]  # the value, and how often compiled code was taken


def test_a_file_without_kernels_compiles_nothing_anew(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text("from kgcf.machine.compiled import kernel\n")
    (tmp_path / "plain.py").write_text("X = 1\n")
    before = compiled.sources_stamp(tmp_path)
    compiled.sources_stamp.cache_clear()
    (tmp_path / "plain.py").write_text("X = 2\n")
    assert compiled.sources_stamp(tmp_path) == before
    compiled.sources_stamp.cache_clear()
    (tmp_path / "kernels.py").write_text("from kgcf.machine.compiled import kernel, reassociated\n")
    assert compiled.sources_stamp(tmp_path) != before


@pytest.mark.usefixtures("fresh_notes")
@pytest.mark.parametrize("watched", [True, False])
def test_who_waits_for_the_compiler_is_told_once(
    watched: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched, raising=False)
    waiting = compiled._Waiting()
    monkeypatch.setattr(compiled, "_waiting", waiting)
    waiting.begin("outer")
    waiting.begin("inner")
    now[0] = 1.5
    waiting.end("inner")
    waiting.end("outer")
    assert compiled.compiling_seconds() == 1.5
    now[0] = 100.0  # time between compilations does not count
    waiting.begin("another")
    assert capsys.readouterr().err == ""
    now[0] = 101.0
    waiting.begin("called by it")
    waiting.begin("called by it too")
    assert capsys.readouterr().err.count("note: compiling for this machine") == int(watched)
