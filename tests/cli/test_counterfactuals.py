"""`kgcf counterfactuals` on the embedded graph and on a user's file: prints, saves, answers about one triple."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from kgcf.cli.counterfactuals import counterfactuals
from kgcf.data.source import read
from kgcf.errors import KgcfError, SettingsError, UnknownNameError
from kgcf.training.batches import choose_removal

app = typer.Typer()
app.command()(counterfactuals)

TRIANGLES = "\n".join(
    f"{prefix}{a}\tlinks\t{prefix}{b}" for prefix in "abcd" for a, b in ((0, 1), (1, 2), (2, 0), (2, 3), (3, 4))
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KGCF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


Write = Callable[[str, str | bytes], Path]


def test_json_and_saved_files(write: Write, tmp_path: Path, cache: Path) -> None:
    file = str(write("small.tsv", TRIANGLES))
    out = tmp_path / "out"
    shown = json.loads(run(file, "--json", "--output", str(out), "--threads", "1", "--pairs", "50", "--examples", "2"))
    assert json.loads((out / "diagnostics.json").read_text())["matches"] == shown["matches"]
    assert len(shown["examples"]) == 2
    assert shown["protocol"]["space"]["seed"] == 0
    table = pq.read_table(out / "counterfactuals.parquet")
    assert table.num_rows == shown["matches"]["triples"]
    assert set(table["head_label"].to_pylist()) <= {f"{p}{i}" for p in "abcd" for i in range(5)}
    assert (out / "diagnostics.png").stat().st_size > 0
    assert (out / "diagnostics.svg").stat().st_size > 0
    assert len(list((cache / "causal").iterdir())) == 2
    assert json.loads(run(file, "--json", "--threads", "2", "--pairs", "50"))["effects"] == shown["effects"]


def test_tables_for_people(write: Write) -> None:
    asked = (str(write("small.tsv", TRIANGLES)), "--pairs", "20", "--no-cache", "--threads", "1")
    assert "train, own links left out" in run(*asked, "--remove", "pair")
    text = run(*asked, "--remove", "triple")
    for expected in ("train, own edge left out", "P(A^CF = 1 | T^CF = 1)", "placebo: T shuffled", "nearest pair"):
        assert expected in text


@pytest.mark.parametrize("candidates", ["all", "observed"])
def test_one_triple_known_or_not(candidates: str, write: Write) -> None:
    file = str(write("small.tsv", TRIANGLES))
    known = json.loads(run(file, "--triple", "a0", "links", "a1", "--candidates", candidates, "--json"))
    unknown = json.loads(run(file, "--triple", "a0", "links", "d4", "--candidates", candidates, "--json"))
    assert (known["head"], known["relation"], known["tail"]) == ("a0", "links", "a1")
    assert unknown["factual_outcome"] is False
    assert unknown["counterfactual_treatment"] is (not unknown["factual_treatment"])
    assert run(file, "--triple", "a0", "links", "d4", "--candidates", candidates).startswith("For (a0, links, d4), ")


def test_a_truncated_cache_is_recomputed_with_a_notice(write: Write, cache: Path) -> None:
    file = str(write("small.tsv", TRIANGLES))
    first = run(file, "--triple", "a0", "links", "d4", "--json")
    (space,) = (cache / "causal").glob("entity-space-*")
    space.write_bytes(space.read_bytes()[:-40])
    result = CliRunner().invoke(app, [file, "--triple", "a0", "links", "d4", "--json"], catch_exceptions=False)
    assert result.stdout == first
    assert "computed again" in result.stderr


def test_treatments_and_leave_one_out_are_passed_on(write: Write) -> None:
    file = str(write("small.tsv", TRIANGLES))
    labels = str(write("labels.tsv", "a0\tx\nd4\tx\na1\ty\n"))
    by_file = json.loads(
        run(file, "--treatment", "file", "--labels", labels, "--triple", "a0", "links", "d4", "--json")
    )
    assert by_file["factual_treatment"] is True
    found = {
        switch: json.loads(run(file, "--json", "--pairs", "2", switch))
        for switch in ("--leave-one-out", "--no-leave-one-out")
    }
    for switch, shown in found.items():
        assert shown["leave_one_out"] is (switch == "--leave-one-out")
        share = "train_left_out" if shown["leave_one_out"] else "train"
        assert shown["matches"]["treated"] == pytest.approx(shown["shares"][share])
    removed = {rule: json.loads(run(file, "--json", "--pairs", "2", "--remove", rule)) for rule in ("triple", "pair")}
    for rule, shown in removed.items():
        assert shown["remove"] == rule
        assert shown["matches"]["treated"] == pytest.approx(shown["shares"]["train_left_out"])
    data = read(file)
    by_data = choose_removal(data.graph, data.valid.queries)
    assert json.loads(run(file, "--json", "--pairs", "2"))["remove"] == by_data
    nobody = json.loads(run(file, "--treatment", "core_component", "--k", "7", "--json", "--pairs", "2"))
    assert nobody["matches"]["matched"] == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--candidates", "some"], UnknownNameError, "Choices: observed, all"),
        (["--treatment", "core_nmber"], UnknownNameError, "core_number"),
        (["--remove", "everything"], UnknownNameError, "triple"),
        (["--psi", "loud"], UnknownNameError, "frequency"),
        (["--k", "3"], SettingsError, "belongs to the treatment 'core_component'"),
        (["--treatment", "file"], SettingsError, "needs 'path'"),
        (["--triple", "a0", "links", "nobody"], UnknownNameError, "no entity called 'nobody'"),
        (["--triple", "a0", "linked", "a1"], UnknownNameError, "no relation called 'linked'"),
    ],
)
def test_mistakes_are_sentences(arguments: list[str], error: type[KgcfError], message: str, write: Write) -> None:
    with pytest.raises(error, match=message):
        run(str(write("small.tsv", TRIANGLES)), *arguments)


def test_the_embedded_graph_speaks_of_countries() -> None:
    text = run("world", "--triple", "Portugal", "borders", "Spain")
    assert text.startswith("For (Portugal, borders, Spain), ")
    assert "the nearest pair with the other treatment is (" in text
