"""A benchmark is known by its checksums: its settings go to its files, whatever their name, and to nothing else."""

import gzip
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from kgcf import pipeline
from kgcf.config import benchmark_values, configure
from kgcf.data import recognition, registry
from kgcf.data.manifest import Benchmark
from kgcf.data.source import read
from kgcf.pipeline import Execution, fit
from kgcf.runs.folder import RunFolder
from tests.homes import graph_facts

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[object], tuple[RunFolder, list[str]]]:
    """What `fit` makes before it trains: the run folder, and what it said."""
    monkeypatch.setattr(pipeline, "_train", lambda *_, **__: None)

    def preparing(source: object) -> tuple[RunFolder, list[str]]:
        said: list[str] = []
        changes, execution = ["training.threads=1"], Execution(say=said.append)
        fit(source, tmp_path / "run", changes=changes, time="none", execution=execution)
        return RunFolder(tmp_path / "run"), said

    return preparing


def world_copy(folder: Path, *, zipped: bool = False) -> Path:
    source = Path(str(resources.files("kgcf.data").joinpath("world")))
    folder.mkdir()
    for name in ("train.txt", "valid.txt", "test.txt"):
        content = (source / name).read_bytes()
        (folder / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0)) if zipped else shutil.copy(
            source / name, folder
        )
    return folder


@pytest.mark.filterwarnings("ignore:With 8 layers")  # a chain: nothing is within reach
def test_a_file_called_like_a_benchmark_gets_the_defaults(
    write: Write, prepared: Callable[[object], tuple[RunFolder, list[str]]]
) -> None:
    path = write("family.tsv", "".join(f"e{i}\tparent\te{i + 1}\n" for i in range(30)))
    assert read(path).name == "family"
    assert read(path).benchmark is None
    folder, said = prepared(path)
    assert benchmark_values("family")["training"]["epochs"] != configure().training.epochs
    assert folder.settings().training.epochs == configure().training.epochs
    assert folder.dataset().benchmark is None
    assert said == []


def test_a_folder_called_like_a_benchmark_gets_the_defaults(write: Write, tmp_path: Path) -> None:
    folder = world_copy(tmp_path / "world")
    with (folder / "train.txt").open("a") as file:
        file.write("Utopia\tborders\tErewhon\n")
    assert read(folder).name == "world"
    assert read(folder).benchmark is None


def test_the_benchmark_gets_its_settings_and_a_note(
    prepared: Callable[[object], tuple[RunFolder, list[str]]],
) -> None:
    folder, said = prepared("world")
    assert (folder.settings().encoder.layers, folder.settings().objective.temperature) == (4, 0.5)
    assert folder.dataset().benchmark == "world"
    assert said[0].startswith("settings of the benchmark world, known by its sha256: encoder.layers=4")
    assert said[0] in folder.dataset().notes


@pytest.mark.parametrize("zipped", [False, True])
def test_the_same_files_elsewhere_are_the_benchmark(
    tmp_path: Path, zipped: bool, prepared: Callable[[object], tuple[RunFolder, list[str]]]
) -> None:
    mine = world_copy(tmp_path / "mine", zipped=zipped)
    data = read(mine)
    assert (data.name, data.benchmark) == ("mine", "world")
    assert f"{mine}: these files are the benchmark world, by their sha256" in data.notes
    folder, said = prepared(data)
    assert folder.settings().encoder.layers == 4
    assert "settings of the benchmark world" in said[0]


def test_an_old_run_folder_has_no_benchmark(prepared: Callable[[object], tuple[RunFolder, list[str]]]) -> None:
    folder, _ = prepared("world")
    path = folder.file("data.json")
    path.write_text(path.read_text().replace('"benchmark"', '"something"'))
    assert folder.dataset().benchmark is None


def test_a_pair_is_known_by_both_graphs(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"train.txt": b"a\tr\tb\nb\tr\tc\n", "valid.txt": b"a\tr\tc\n", "test.txt": b"c\tr\ta\n"}
    new = {name: content.replace(b"a", b"x") for name, content in old.items()}
    pair = Benchmark("pair", (graph_facts("p", old, []), graph_facts("p_ind", new, [])), (), "none", "a test", None)
    single = Benchmark("single", (pair.graphs[0],), (), "none", "a test", None)
    monkeypatch.setattr(recognition, "benchmarks", lambda: {"pair": pair, "single": single})
    for name, content in old.items():
        folder = write(f"mine/{name}", content).parent
    assert read(folder).benchmark == "single"
    for name, content in new.items():
        write(f"mine_ind/{name}", content)
    assert read(folder).benchmark == "pair"
    write("mine_ind/test.txt", b"b\tr\tx\n")
    assert read(folder).benchmark is None


@pytest.mark.benchmark
def test_the_family_benchmark_gets_its_settings(prepared: Callable[[object], tuple[RunFolder, list[str]]]) -> None:
    data = registry.load("family")
    assert data.benchmark == "family"
    folder, said = prepared(data)
    assert folder.settings().training.epochs == benchmark_values("family")["training"]["epochs"]
    assert "settings of the benchmark family" in said[0]
