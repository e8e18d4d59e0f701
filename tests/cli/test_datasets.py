"""`kgcf datasets` through the real command line."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kgcf.cli import app
from kgcf.data import registry

TSV = "".join(f"a{i}\tlikes\ta{(i + k) % 20}\n" for i in range(20) for k in (1, 2))


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["datasets", *arguments], catch_exceptions=False, env={"COLUMNS": "120"})
    assert result.exit_code == 0
    return result.stdout


def refused(*arguments: str) -> str:
    """Standard error of a command that must fail, in a process of its own."""
    command = [sys.executable, "-m", "kgcf", "datasets", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_ls_lists_every_benchmark() -> None:
    rows = {line.split()[0]: line for line in run("ls").splitlines() if line}
    assert set(registry.names()) <= set(rows)
    assert rows["wn18rr"].split()[1:6] == ["40943", "11", "86835", "3034", "3134"]
    assert rows["world"].endswith("package") or "package" in rows["world"]


def test_ls_as_json() -> None:
    found = {entry["name"]: entry for entry in json.loads(run("ls", "--json"))}
    assert list(found) == registry.names()
    assert found["world"]["files"] == "package"
    assert found["wn18rr:v1"]["inductive"] is True
    assert found["drugmechdb"]["licence"] == "CC0 1.0"


def test_ls_says_what_is_not_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgcf.data.locations.list_locations", lambda root=None: [])
    found = {entry["name"]: entry["files"] for entry in json.loads(run("ls", "--json"))}
    assert found["wn18rr"] == "download"
    assert found["drugmechdb"] == "not at hand"


def test_info_of_the_embedded_graph(tmp_path: Path) -> None:
    said = run("info", "world", "--plot", str(tmp_path / "world.svg"), "--relations", "2")
    assert "GeoNames and CLDR" in said
    assert "within k hops" in said
    assert "relations, 2 of 21" in said
    assert "relation categories" in said
    assert (tmp_path / "world.svg").stat().st_size > 1000
    assert "Drawn to" in said


def test_info_as_json() -> None:
    found = json.loads(run("info", "world", "--json"))
    assert found["queries"][1]["leaked"] == 0
    assert found["benchmark"]["licence"] == "CC BY 4.0"
    assert len(found["per_relation"]) == 21


def test_info_of_a_file(write: Callable[[str, str], Path]) -> None:
    path = write("mine.tsv", TSV)
    found = json.loads(run("info", str(path), "--json"))
    assert "benchmark" not in found
    assert found["train"] + found["valid"] + found["test"] == 40
    assert "likes" in run("info", str(path))


def test_info_without_relations() -> None:
    assert "relations, " not in run("info", "world", "--relations", "0")


@pytest.mark.benchmark
def test_info_of_wn18rr_shows_the_published_facts() -> None:
    said = run("info", "wn18rr")
    rows = {line.split("  ")[0]: line for line in said.splitlines() if line.strip()}
    assert rows["transductive"].split()[1:] == ["40,943", "11", "86,835", "3,034", "3,134"]
    assert rows["with an entity unseen in the graph"].endswith("210 (6.7%)")
    assert rows["inverse leakage, both"].endswith("1,086 (34.7%)")


@pytest.mark.benchmark
def test_info_of_an_inductive_pair_shows_both_graphs() -> None:
    said = run("info", "wn18rr:v1")
    assert "train graph" in said
    assert "test graph" in said
    assert "922 of 922" in said


@pytest.mark.benchmark
def test_get_copies_and_says_where(tmp_path: Path) -> None:
    said = run("get", "wn18rr:v1", "--to", str(tmp_path))
    assert said.split() == [str(tmp_path / name) for name in ("WN18RR_v1", "WN18RR_v1_ind", "wn18rr")]
    assert registry.load("wn18rr:v1", data_root=tmp_path).test.entities.names


def test_mistakes_are_sentences() -> None:
    assert "Error: There is no benchmark called 'wn18r'. Did you mean 'wn18rr'" in refused("get", "wn18r")
    assert ".png or .svg" in refused("info", "world", "--plot", "picture.bmp")
