"""kgcf as Python users meet it: what is shown, what comes back, and what is said to mistakes."""

import builtins
import pydoc
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import kgcf
from kgcf import pipeline
from kgcf.data.dataset import Dataset
from kgcf.errors import KgcfError, KgcfWarning, SettingsError, UnknownNameError
from kgcf.explanation.words import sentences
from kgcf.prediction.answers import Answers
from kgcf.runs.folder import RunFolder
from kgcf.runs.passes import passes_of
from kgcf.runs.run import Run
from tests.training.tiny import TINY, dataset
from tests.wiring.conftest import Town

PUBLIC = ("fit", "open", "read", "resume")
HOSTILE = "<script>alert(1)</script>\x1b[31m"


def test_the_module_shows_what_it_has() -> None:
    assert set(PUBLIC) <= set(dir(kgcf))
    text = pydoc.plain(pydoc.render_doc(kgcf))
    for name in PUBLIC:
        assert f"{name}(" in text
    assert all(callable(getattr(kgcf, name)) for name in PUBLIC)


def test_a_star_import_leaves_open_alone() -> None:
    names: dict[str, object] = {"open": builtins.open}
    exec("from kgcf import *", names)
    assert names["open"] is builtins.open
    assert {"fit", "read", "resume"} <= set(names)


def test_answers_are_a_list_a_table_and_a_frame(town: Town) -> None:
    answers = town.run.predict("e1", "parent", top=3)
    assert isinstance(answers, list)
    assert [type(answers), type(answers[:2]), len(answers[:2])] == [Answers, Answers, 2]
    lines = repr(answers).splitlines()
    assert lines[0].split() == ["rank", "head", "relation", "tail", "probability", "logit", "note"]
    assert len(lines) == 4
    assert " ".join(lines[1].split()).startswith(f"1 e1 parent {answers[0].tail} {answers[0].probability:.4f} ")
    frame = answers.to_pandas()
    assert frame["tail"].tolist() == [answer.tail for answer in answers]
    pd.testing.assert_frame_equal(frame, pd.DataFrame(answers))
    assert list(Answers().to_pandas().columns) == list(frame.columns)
    assert repr(Answers()) == "no answers"


def test_completed_links_are_answers_too(town: Town) -> None:
    one = town.run.complete("grandparent", top=30)
    assert isinstance(one, Answers)
    assert one == town.run.complete(["grandparent"], top=30)
    assert {answer.relation for answer in one} == {"grandparent"}
    assert repr(one).splitlines()[-1] == f"… and {len(one) - 20} more"
    assert f"… and {len(one) - 20} more" in one._repr_html_()


def test_the_unknown_part_may_be_a_question_mark(town: Town) -> None:
    assert town.run.predict("?", "parent", "e9") == town.run.predict(relation="parent", tail="e9")
    only = town.run.predict("e1", "friend", candidates="e3", show_known=True)
    assert [answer.tail for answer in only] == ["e3"]


def test_probabilities_of_given_triples_are_those_of_predictions(town: Town) -> None:
    answers = [*town.run.predict("e1", "parent", top=5), *town.run.predict("e2", "friend", top=40)]
    rows = [(a.head, a.relation, a.tail) for a in answers]
    assert {a.reached for a in answers} == {True, False}
    said = town.run.score(rows, probabilities=True)
    np.testing.assert_allclose(said, [a.probability for a in answers], atol=1e-6)
    wanted = [a.logit if a.logit is not None else np.nan for a in answers]
    scores = np.where([a.reached for a in answers], town.run.score(rows), np.nan)  # the others have none to show
    np.testing.assert_allclose(scores, wanted, atol=1e-4)


def test_an_evaluation_has_its_numbers_at_hand(town: Town) -> None:
    result = town.run.evaluate("test")
    assert result.mrr == result["mrr"]
    assert result.hits[10] == result["hits@10"]
    assert set(result.hits) == {1, 3, 5, 10}
    ranks = result.ranks.realistic
    assert result.hits[7] == sum(rank <= 7 for rank in ranks) / len(ranks)
    assert f"{result.mrr:.3f}" in repr(result)
    assert "kgcf (default) on raw, test: 8 triples" in repr(result)


def test_runs_and_data_say_what_they_are(town: Town) -> None:
    assert repr(town.run.data).startswith("Dataset(raw: ")
    assert "3 relations; " in repr(town.run.data)
    text = repr(town.run)
    assert str(town.run.folder.path) in text
    assert "default, 2 layers, seed 0" in text
    assert "fitted to validation" in text
    moved = Run(RunFolder(Path("gone")), town.run.model, town.run.data, town.run.settings)
    assert "sigmoid of the logit" in repr(moved)


@pytest.fixture(scope="module")
def hostile(town: Town) -> Run:
    """The run of the town with labels that a page or a terminal would obey."""
    data = town.run.data
    names = {label: f"{HOSTILE}{label}" for label in data.entities.labels()}
    entities = data.entities.with_names(names)
    train, valid, test = (
        type(split)(split.name, split.observed, split.queries, split.known, entities) for split in data.splits
    )
    changed = Dataset(HOSTILE, data.relations, train, valid, test)
    run = Run(RunFolder(town.run.folder.path), town.run.model, changed, town.run.settings)
    run.calibration = town.run.calibration
    return run


def test_hostile_labels_are_shown_and_not_obeyed(hostile: Run) -> None:
    shown = [hostile, hostile.data, hostile.predict("e1", "parent"), hostile.evaluate("test", limit=2)]
    for item in shown:
        page = item._repr_html_()  # type: ignore[attr-defined]
        assert "&lt;script&gt;" in page
        assert "<script" not in page
        assert "\x1b" not in page
        assert r"\x1b[31m" in repr(item)
        assert "\x1b" not in repr(item)


@pytest.mark.parametrize(
    ("ask", "error", "sentence"),
    [
        (
            lambda run: run.predict("e1", "parent", observed="valid"),
            SettingsError,
            "observed cannot be 'valid'.*'train'",
        ),
        (
            lambda run: run.explain("e1", "parent", "e2", asked="x"),
            SettingsError,
            "asked cannot be 'x'.*'tail', 'head'",
        ),
        (lambda run: run.explain("e1", "parent", "e2", layers="own."), SettingsError, "Did you mean 'own'"),
        (lambda run: run.predict("e1", "parent", top=0), SettingsError, "top cannot be 0: give a whole number"),
        (lambda run: run.complete("parent", top=-1), SettingsError, "top cannot be -1"),
        (lambda run: run.complete("parent", min_probability=2), SettingsError, "min_probability cannot be 2"),
        (lambda run: run.explain("e1", "parent", "e2", top=1.5), SettingsError, "top cannot be 1.5"),
        (lambda run: run.explain("e1", "parent", "e2", candidates=0), SettingsError, "candidates cannot be 0"),
        (lambda run: run.explain("e1", "parent", "e2", tops=1), UnknownNameError, "argument of explain called 'tops'"),
        (
            lambda run: run.evaluate("tset"),
            UnknownNameError,
            "no split called 'tset'. Did you mean 'test'.*train, valid, test",
        ),
        (lambda run: run.evaluate(limit=0), SettingsError, "limit cannot be 0"),
        (lambda run: run.complete("parnet"), UnknownNameError, "no relation called 'parnet'. Did you mean 'parent'"),
        (lambda run: run.predict("e1"), SettingsError, r"Give two of head, relation and tail.*predict\("),
        (lambda run: run.score(("e1", "parent", "e2")), SettingsError, r"score takes a list of triples.*\['e1'\]"),
    ],
)
def test_mistakes_get_sentences(
    town: Town, ask: Callable[[Run], object], error: type[KgcfError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        ask(town.run)


def test_an_explanation_prints_as_sentences(town: Town) -> None:
    text = str(town.run.explain("e1", "grandparent", "e5"))
    assert text.startswith("e1 —grandparent→ e5: probability ")
    assert text == "\n".join(sentences(town.run.explain("e1", "grandparent", "e5")))


def test_frames_need_pandas(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(KgcfError, match=r"to_pandas\(\) needs the optional extra 'pandas'"):
        town.run.predict("e1", "parent").to_pandas()


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """No training, but what it would say."""

    def train(*given: object, **_: object) -> None:
        execution = next(item for item in given if isinstance(item, pipeline.Execution))
        execution.say("treatment: said")
        execution.listener.epoch({"epoch": 1, "queries_per_second": 5, "unreached": 0, "impossible": 0, "seconds": 1})

    monkeypatch.setattr(pipeline, "_train", train)


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("looks", "progress", "shown"), [(True, None, 1), (False, None, 0), (True, False, 0), (False, True, 1)]
)
def test_fit_shows_progress_where_somebody_looks(
    looks: bool,
    progress: bool | None,
    shown: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Console, "is_terminal", property(lambda _: looks))
    kgcf.fit(dataset(), tmp_path / "run", changes=TINY, progress=progress)
    told = capsys.readouterr().err
    assert told.count("treatment: said") == told.count("epoch 1  ") == shown


@pytest.mark.usefixtures("untrained")
def test_settings_as_mapping_path_and_seed(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[training]\nbatch_size = 4\nseed = 1\n[space]\nwalks = 3\n")
    changes = {"training.batch_size": 64, "training.patience": None, "encoder": {"width": 8}, "space.seed": 2}
    kgcf.fit(dataset(), tmp_path / "run", config=str(tmp_path / "mine.toml"), changes=changes, seed=5)
    settings = RunFolder(tmp_path / "run").settings()
    assert (settings.training.batch_size, settings.encoder.width, settings.space.walks) == (64, 8, 3)
    assert (settings.training.seed, settings.space.seed, settings.treatment.seed) == (5, 2, 0)
    with pytest.warns(KgcfWarning, match="With 1 layers"):  # a depth that was asked for stays
        kgcf.fit(dataset(), tmp_path / "other", preset="fast", changes=iter(["encoder.layers=1"]))
    assert RunFolder(tmp_path / "other").settings().encoder.layers == 1


def test_a_mistake_in_settings_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no setting 'training.batchsize'. Did you mean 'batch_size'"):
        kgcf.fit(dataset(), tmp_path / "run", changes={"training.batchsize": 64})
    assert not (tmp_path / "run").exists()


def test_results_carry_settings_seeds_commit_and_effort(town: Town) -> None:
    protocol = town.run.evaluate("valid").protocol
    assert protocol["settings"] == town.run.settings.model_dump(mode="json")
    assert protocol["seeds"] == {"space.seed": 0, "training.seed": 0, "memory.seed": 0}
    history = protocol["training"]["epochs"]
    asked = sum(epoch["queries"] + epoch["unreached"] + epoch["impossible"] for epoch in history)
    assert protocol["queries_asked"] == asked
    assert protocol["sweeps"] == pytest.approx(asked / len(town.run.data.graph), abs=1e-3)
    assert protocol["sweeps"] == 6, "three epochs ask every triple from both ends"
    assert protocol["passes"] == 3 * len(passes_of(town.run.data.graph, town.run.settings)) < asked
    assert 0 < protocol["queries_trained"] <= asked
    assert protocol["training_seconds"] > 0
    assert protocol["ties"].startswith("realistic")
    assert protocol["commit"] == protocol["training"]["trained_by"]["commit"]
    if (Path(kgcf.__file__).parents[2] / ".git").exists():
        assert protocol["commit"].removesuffix("+changes").isalnum()
        assert protocol["commit"] not in ("release", "unknown")
