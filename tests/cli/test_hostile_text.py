"""Every command on a graph whose labels, names and folder want to be obeyed: all is shown, nothing is obeyed."""

import ast
import json
import os
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import kgcf
from kgcf.cli import app, main
from kgcf.screen import inert
from tests.training.tiny import TINY, dataset

LABELS = (
    "[/x]",
    "[bold]loud[/bold]",
    "Amine oxidase [flavin-containing] A",
    "\x1b[31mred",
    "\x9b31mred too",
    "bell\x07",
    "two\nlines",
    "car\rriage",
    "a\ttab",
    "<script>document.title='caught'</script>",
    "\u202ethgir ot tfel\u2066",
    "x" * 5000,
    "🦔 :smile: hedgehog",
    r"$\frac{1}$ and \[bold]",
    '"quoted", "twice"',
)
RELATIONS = ("[/parent] \x1b[1m", "grand\n\u202e[parent]", ":heart: $\\bad$")
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
QUICK = [p for c in (*TINY, "training.epochs=1", "training.threads=1", "space.walks=2") for p in ("--set", c)]


def label(entity: int) -> str:
    return LABELS[entity] if entity < len(LABELS) else f"e{entity}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data set `[bold]data`, display names, and a run that was trained by the command line."""
    folder = tmp_path_factory.mktemp("hostile")
    data = folder / "[bold]data\x07 :smile:"
    data.mkdir()
    for split in dataset().splits:
        rows = [(label(h), RELATIONS[r], label(t)) for h, r, t in split.queries.tolist()]
        columns = dict(zip(("head", "relation", "tail"), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), data / f"{split.name}.parquet")
    names = "e20\tKeyring [old] \x1b[32m\ne21\tKeyring [old] \x1b[32m\n"
    (folder / "names.tsv").write_text(names, encoding="utf-8")
    trained = said("train", data, "--names", folder / "names.tsv", "--output", folder / "[run]\x1b[31m", *QUICK)
    assert r"/[run]\x1b[31m" in trained.stdout
    assert r"[bold]data\x07 :smile:, test" in trained.stdout
    return folder


def data_of(place: Path) -> Path:
    return next(place.glob("*data*"))


def run_of(place: Path) -> Path:
    return next(place.glob("*run*"))


def said(*arguments: str | Path) -> Result:
    """What a command prints; it must succeed, and print no active character."""
    result = CliRunner(env={"COLUMNS": "12000"}).invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    for stream in (result.stdout.replace("\t", " "), result.stderr):  # the tabs between the cells of a table are ours
        assert not ACTIVE.search(stream), ACTIVE.search(stream)
    return result


@pytest.mark.parametrize("entity", range(len(LABELS)))
def test_predict_shows_every_label(place: Path, entity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    only = place / "only.txt"
    only.write_text("e20\n", encoding="utf-8")
    asked = ("--head", LABELS[entity], "--relation", RELATIONS[2], "--candidates", only, "--known")
    for form, end in (("people", r"Keyring [old] \x1b[32m (e20)"), ("", "\te20\t")):
        monkeypatch.setenv("KGCF_TABLES", form)
        table = said("predict", run_of(place), *asked).stdout
        assert inert(LABELS[entity]) in table
        assert inert(RELATIONS[2]) in table
        assert end in table
    (answer,) = json.loads(said("predict", run_of(place), *asked, "--json").stdout)
    assert (answer["head"], answer["relation"], answer["tail"]) == (LABELS[entity], RELATIONS[2], "e20")
    assert (answer["head_name"], answer["tail_name"]) == (LABELS[entity], "Keyring [old] \x1b[32m")
    why = said("predict", run_of(place), *asked, "--explain").stdout
    assert f"{inert(LABELS[entity])} —{inert(RELATIONS[2])}→ " in why


def test_relations_and_heads_are_shown_too(place: Path) -> None:
    asked = ("--head", LABELS[0], "--tail", LABELS[3], "--known")
    assert all(inert(relation) in said("predict", run_of(place), *asked).stdout for relation in RELATIONS)
    heads = said("predict", run_of(place), "--relation", RELATIONS[0], "--tail", LABELS[1], "--top", "40", "--known")
    shown = [name for name in LABELS if inert(name) in heads.stdout]
    assert len(shown) == len(LABELS)


def test_complete_prints_every_label(place: Path) -> None:
    asked = ("complete", run_of(place), "--candidates", "all", "--top", "400")
    found = json.loads(said(*asked, "--json").stdout)
    labels = {answer[part] for answer in found for part in ("head", "tail")}
    assert labels >= set(LABELS)
    table = said(*asked).stdout
    assert all(inert(name) in table for name in LABELS)
    written = said("complete", run_of(place), "--top", "5", "--output", place / "[/out].tsv")
    assert "[/out].tsv" in written.stderr


@pytest.mark.parametrize("entity", range(len(LABELS)))
def test_explain_shows_every_label(place: Path, entity: int) -> None:
    triple = (LABELS[entity], RELATIONS[2], "e21")
    page, picture = place / "[/page].html", place / "[/page].png"
    text = said("explain", run_of(place), *triple, "--html", page, "--png", picture).stdout
    end = r"Keyring [old] \x1b[32m (e21)"
    assert f"{inert(LABELS[entity])} —{inert(RELATIONS[2])}→ {end}" in text
    assert f"Written to {inert(str(page))}." in text
    document = page.read_text(encoding="utf-8")
    before, _, after = document.partition("<style>")
    assert not ACTIVE.search(before + after.partition("</style>")[2].partition("<script")[0])
    found = json.loads(said("explain", run_of(place), *triple, "--json").stdout)
    assert (found["head"]["label"], found["tail"]["label"]) == (LABELS[entity], "e21")
    assert found["tail"]["ambiguous"]


def test_the_other_commands_show_what_the_data_say(place: Path) -> None:
    data, run = data_of(place), run_of(place)
    name = r"[bold]data\x07 :smile:"
    facts = said("datasets", "info", data, "--plot", place / "relations.png").stdout
    assert all(inert(text) in facts for text in (*RELATIONS, name))
    assert {r["label"] for r in json.loads(said("datasets", "info", data, "--json").stdout)["per_relation"]} == set(
        RELATIONS
    )
    evaluated = said("evaluate", run, "--details", "--output", place / "[/results].json").stdout
    assert all(text in evaluated for text in (name, inert(RELATIONS[1]), "[/results].json"))
    assert "frequency" in said("evaluate", data, "--details").stdout
    compared = said("compare", run, run, "--plot", place / "[/curves].svg").stdout
    assert all(text in compared for text in (name, r"[run]\x1b[31m", "[/curves].svg"))
    assert r"[run]\x1b[31m" in said("resume", run).stdout
    said("datasets", "ls")


def test_counterfactuals(place: Path) -> None:
    data, folder = data_of(place), place / "[/causal]"
    quick = ("--no-cache", "--pairs", "50", "--examples", "40")
    printed = said("counterfactuals", data, *quick, "--output", folder, "--names", place / "names.tsv").stdout
    assert all(inert(relation) in printed for relation in RELATIONS)
    assert "[/causal]" in printed
    stored = pq.read_table(folder / "counterfactuals.parquet")
    assert set(stored["relation_label"].to_pylist()) == set(RELATIONS) == set(stored["relation_name"].to_pylist())
    pairs = set(zip(stored["head_label"].to_pylist(), stored["head_name"].to_pylist(), strict=True))
    assert ("e20", "Keyring [old] \x1b[32m") in pairs
    assert ("[/x]", "[/x]") in pairs
    triple = ("--triple", LABELS[0], RELATIONS[0], LABELS[1], "--no-cache")
    assert f"For ([/x], {inert(RELATIONS[0])}, [bold]loud[/bold])" in said("counterfactuals", data, *triple).stdout
    row = json.loads(said("counterfactuals", data, *triple, "--json").stdout)
    assert (row["head"], row["head_name"], row["relation_name"]) == (LABELS[0], LABELS[0], RELATIONS[0])


def test_tune(place: Path) -> None:
    search: tuple[str | Path, ...] = (
        "--search",
        "encoder.layers=1",
        "--trials",
        "1",
        "--output",
        place / "[/search]",
        *QUICK,
    )
    assert "encoder.layers" in said("tune", data_of(place), "--preset", "nbfnet", *search).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("predict", "RUN", "--head", "\x1b[31m[/x\x07", "--relation", "r"), r"no entity called '\x1b[31m[/x\x07'"),
        (("predict", "[/none]\x9b", "--head", "a", "--relation", "r"), r"[/none]\x9b"),
        (("predict", "RUN", "--head", "Keyring [old] \x1b[32m", "--relation", "r"), "it names e20, e21. Use one of"),
        (("datasets", "info", "[/nowhere] :smile:"), "called '[/nowhere] :smile:'"),
        (("predict", "RUN", "--[bold]\x1b[31m"), r"--[bold]\x1b[31m"),
    ],
)
def test_errors_are_shown(
    place: Path,
    arguments: tuple[str, ...],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [str(run_of(place)) if argument == "RUN" else argument for argument in arguments]
    monkeypatch.setattr(sys, "argv", ["kgcf", *given])
    monkeypatch.setitem(os.environ, "COLUMNS", "12000")
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code != 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert not ACTIVE.search(printed.err)


def test_only_the_screen_prints() -> None:
    """Markup cannot come back unseen: no module but `screen` has a plain console, prints, or echoes."""
    wrong = []
    for path in Path(kgcf.__file__).parent.rglob("*.py"):
        if path.name == "screen.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func
                name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
                plain = isinstance(called, ast.Name) and name == "print"
                if plain or name in ("Console", "echo", "secho", "from_markup", "from_ansi"):
                    wrong.append(f"{path.name}, line {node.lineno}: {name}")
    assert wrong == []
