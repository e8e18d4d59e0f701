"""A run's probabilities, end to end: fitted after training, reported on test, kept, and on every answer."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from kgcf.cli.answer_tables import answer_table
from kgcf.cli.evaluation_tables import show_calibration
from kgcf.data.dataset import Dataset, Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import StorageError
from kgcf.pipeline import fit
from kgcf.prediction.answers import Answer
from kgcf.prediction.calibration.calibrate import PLOT
from kgcf.prediction.calibration.completed_links import CompletionCalibration
from kgcf.prediction.calibration.fitting import FittedCurve
from kgcf.prediction.calibration.link_curves import LinkCurve
from kgcf.prediction.calibration.record import FILE
from kgcf.prediction.calibration.sampling import collect_best
from kgcf.prediction.outputs import write_answers
from kgcf.runs.run import Run
from tests.training.tiny import TINY, dataset, family

QUICK = (*TINY, "training.threads=1", "training.epochs=4")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small NBFNet that learned grandparents."""
    return fit(dataset(), tmp_path_factory.mktemp("runs") / "run", preset="nbfnet", changes=QUICK)


@pytest.fixture(scope="module")
def inductive(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same, to be tested on another family."""
    data = dataset()
    graph = family(np.random.default_rng(5), people=25)
    rows = np.flatnonzero(graph.triples[:, 1] == 1)[-6:]
    seen = KnowledgeGraph.build(np.delete(graph.triples, rows, axis=0), 25, 3)
    people = Vocabulary([f"new {i}" for i in range(25)])
    moved = replace(data, name="moved", test=Split("test", seen, graph.triples[rows], graph, people))
    return fit(moved, tmp_path_factory.mktemp("runs") / "moved", preset="nbfnet", changes=QUICK)


def questions(data: Dataset) -> list[tuple[str, str]]:
    return [(data.test.entities.label(h), data.relations.label(r)) for h, r, _ in data.test.queries.tolist()]


def test_training_fits_and_leaves_test_alone(trained: Run) -> None:
    values = json.loads(trained.folder.file(FILE).read_text())
    assert values["method"] in ("platt", "isotonic", "relation")
    assert set(values["parameters"]) == {"platt", "isotonic", "relation"}
    assert values["test"] is None
    assert values["valid"]["answers"] == 10 * values["valid"]["questions"]
    assert 0 < values["valid"]["base_rate"] < 1
    assert {"label", "answers", "unreached", "ece", "seed", "commit"} <= set(values["protocol"])
    assert "held back for validation" in values["protocol"]["completion"]["meaning"]
    assert values["completion"]["scope"] == "seen"
    assert values["completion"]["facts"]["questions"] > 0


def test_an_opened_run_has_the_same_calibration(trained: Run) -> None:
    assert trained.calibration is not None
    assert Run.open(trained.folder.path).calibration == trained.calibration


def test_evaluation_reports_on_test(trained: Run) -> None:
    run = Run.open(trained.folder.path)
    assert run.calibration is not None
    fitted = run.calibration.calibration
    run.evaluate(save=True)
    assert run.calibration.calibration == fitted
    report = run.calibration.test
    assert report is not None
    answers = collect_best(run.bind(run.data.graph, run.data.entities), run.data.test)
    assert (report.answers, report.base_rate) == (len(answers), answers.base_rate)
    said = fitted.probabilities(answers.logits, answers.reached, answers.relations)
    assert report.reliability[fitted.method].brier == pytest.approx(np.square(said - answers.labels).mean())
    assert run.folder.file(PLOT).read_bytes().startswith(b"\x89PNG")
    assert Run.open(trained.folder.path).calibration == run.calibration


def test_calibration_helps_on_test(trained: Run) -> None:
    record = trained.calibrate(save=False)
    assert record.test is not None
    before, after = record.test.reliability["sigmoid"], record.test.reliability[record.calibration.method]
    assert after.ece < before.ece
    assert after.brier < before.brier


def test_a_second_calibration_does_not_rank_again(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = trained.calibrate()
    monkeypatch.setattr("kgcf.prediction.calibration.calibrate.collect_best", None)
    assert trained.calibrate() == first
    with pytest.raises(TypeError):
        trained.calibrate(seed=1, limit=3, save=False)


def test_answers_carry_the_calibrated_probability(trained: Run) -> None:
    run = Run.open(trained.folder.path)
    assert run.calibration is not None
    calibration = run.calibration.calibration
    for head, relation in questions(run.data):
        answers = run.predict(head, relation, top=40, observed="train")
        assert {a.probability_from for a in answers} == {calibration.method}
        assert {a.probability_given for a in answers} == {"the question has an answer that is not observed"}
        logits, reached = np.array([a.logit or 0.0 for a in answers]), np.array([a.reached for a in answers])
        asked = np.full(len(answers), run.data.relations.id(relation, "relation"))
        assert [a.probability for a in answers] == calibration.probabilities(logits, reached, asked).tolist()
        assert [a.rank for a in answers] == sorted(a.rank for a in answers)
        assert (np.diff([a.probability for a in answers]) <= 0).all()  # ranks and probabilities agree


def test_scored_triples_have_the_probability_of_their_own_relation(trained: Run) -> None:
    run = Run.open(trained.folder.path)
    assert run.calibration is not None
    curve = LinkCurve((-20.0, 20.0), (-43.0, 37.0), (0.0, 0.5, -2.0, 9.0, 9.0, 9.0))  # 2 · logit − 3, and an intercept
    known = replace(run.calibration.calibration, method="relation", curves={"relation": FittedCurve(curve, 0.0)})
    run.calibration = replace(run.calibration, calibration=known)
    asked = [("3", relation, "5") for relation in run.data.relations.labels()]
    bound = run.observe()
    ids = np.array([[bound.entities.id(h), bound.relations.id(r), bound.entities.id(t)] for h, r, t in asked])
    assert bound.logits(ids[:, 0], ids[:, 1], ids[:, 2:])[1].all()  # a path reaches all of them
    wanted = [
        1 / (1 + np.exp(3 - shift - 2 * logit)) for shift, logit in zip((0, 0.5, -2), run.score(asked), strict=True)
    ]
    assert run.score(asked, probabilities=True) == pytest.approx(wanted)


def test_half_links_are_those_of_train(trained: Run) -> None:
    train = {tuple(row) for row in trained.data.graph.triples.tolist()}
    people = trained.data.entities
    for observed in ("all", "train"):
        for asked in ({"head": "3"}, {"tail": "30"}):
            for a in trained.predict(**asked, relation="grandparent", top=40, show_known=True, observed=observed):
                h, t = people.id(a.head), people.id(a.tail)
                assert a.head_seen == any((h, 1, e) in train for e in range(40))
                assert a.tail_seen == any((e, 1, t) in train for e in range(40))
    relations = trained.predict(head="0", tail="5", show_known=True)
    assert {a.relation: a.tail_seen for a in relations} == {
        name: any((e, r, 5) in train for e in range(40)) for r, name in enumerate(trained.data.relations.labels())
    }


def test_completion_uses_the_calibrated_probability(trained: Run) -> None:
    run = Run.open(trained.folder.path)
    assert run.calibration is not None
    curve = LinkCurve((-20.0, 20.0), (-43.0, 37.0), (0.0, 0.5, -2.0))  # 2 · logit − 3, and an intercept by relation
    known = CompletionCalibration("seen", "for this test", curve)
    run.calibration = replace(run.calibration, completion=known)
    everything = run.complete(["grandparent"], top=200)
    probabilities = [a.probability for a in everything]
    assert probabilities == pytest.approx([1 / (1 + np.exp(2.5 - 2 * (a.logit or 0))) for a in everything])
    assert probabilities == sorted(probabilities, reverse=True)
    bar = probabilities[len(probabilities) // 2]
    likely = run.complete(["grandparent"], top=200, min_probability=bar)
    assert likely == [a for a in everything if a.probability >= bar]
    assert 0 < len(likely) < len(everything)
    both = run.complete(["grandparent", "friend"], top=400)
    assert [a.probability for a in both] == sorted((a.probability for a in both), reverse=True)
    assert [a.logit for a in both] != sorted(
        (a.logit or 0 for a in both), reverse=True
    )  # the ranking is by probability
    train = trained.data.graph.triples[trained.data.graph.triples[:, 1] == 1]
    for a in everything:  # completion asks about entities seen in all that was given, valid and test included
        assert a.head_seen == (trained.data.entities.id(a.head) in train[:, 0])
        assert a.tail_seen == (trained.data.entities.id(a.tail) in train[:, 2])
    assert run.complete(["grandparent"], min_probability=1.0) == []


def test_files_name_the_method(trained: Run, tmp_path: Path) -> None:
    answers = trained.predict("3", "grandparent", top=3)
    write_answers(answers, tmp_path / "found.tsv")
    header, first = (line.split("\t") for line in (tmp_path / "found.tsv").read_text().splitlines()[:2])
    row = dict(zip(header, first, strict=True))
    assert row["probability_from"] == answers[0].probability_from
    assert float(row["probability"]) == answers[0].probability
    assert {"rank", "logit", "head_seen", "tail_seen"} <= set(header)


def test_an_inductive_run_is_fitted_on_its_own_graph_and_reported_on_the_new_one(inductive: Run) -> None:
    record = inductive.calibrate()
    assert record.valid is not None
    assert record.test is not None
    test, valid = inductive.data.test, inductive.data.valid
    for task, report in ((valid, record.valid), (test, record.test)):
        answers = collect_best(inductive.bind(task.observed, task.entities), task)
        assert (report.questions, report.base_rate) == (answers.question_count, answers.base_rate)
    assert record.protocol["setting"] == "inductive"
    answer = inductive.predict("new 3", "grandparent", top=1)[0]
    assert answer.probability_from == record.calibration.method


def test_other_weights_have_no_calibration(trained: Run) -> None:
    run = Run.open(trained.folder.path)
    path = run.folder.file(FILE)
    kept = path.read_text()
    try:
        path.write_text(json.dumps({**json.loads(kept), "weights_sha256": "other"}))
        stale = Run.open(trained.folder.path)
        assert stale.calibration is None
        answer = stale.predict("3", "grandparent", top=1)[0]
        assert answer.probability_from == "sigmoid"
        assert answer.logit is not None
        assert answer.probability == pytest.approx(1 / (1 + np.exp(-answer.logit)))
        path.write_text(kept[: len(kept) // 2])
        with pytest.raises(StorageError, match=r"calibration\.json is damaged .*Delete it"):
            Run.open(trained.folder.path)
    finally:
        path.write_text(kept)


def test_a_calibration_of_an_older_kgcf_is_not_used_and_made_anew(trained: Run) -> None:
    path = trained.folder.file(FILE)
    kept = path.read_text()
    older = {name: value for name, value in json.loads(kept).items() if name not in ("format", "completion")}
    try:
        path.write_text(json.dumps(older))
        with pytest.warns(UserWarning, match="older kgcf, which let test truths into the fit; .* kgcf evaluate"):
            run = Run.open(trained.folder.path)
        assert run.predict("3", "grandparent", top=1)[0].probability_given == "nothing: not calibrated"
        links = run.complete(["grandparent"], top=3)  # fitted on the spot
        assert {a.probability_from for a in links} == {"completion"}
        run.evaluate(save=True)
        assert run.calibration is not None
        assert Run.open(trained.folder.path).calibration == run.calibration
        assert run.complete(["grandparent"], top=3) == links
    finally:
        path.write_text(kept)


def test_all_candidates_have_a_calibration_of_their_own(trained: Run) -> None:
    found = trained.completion_calibration(every_entity=True)
    assert found.scope == "all"
    assert {a.probability_from for a in trained.complete(["friend"], top=3, every_entity=True)} == {"completion"}


def test_questions_apart_share_no_head_and_relation_with_the_fit(trained: Run) -> None:
    data = trained.data
    rows = np.concatenate([data.test.queries, data.valid.queries[:3] * [1, 1, 0] + [0, 0, 39]]).astype(np.int32)
    moved = replace(data, test=replace(data.test, queries=rows))
    record = Run(trained.folder, trained.model, moved, trained.settings).calibrate(seed=7, save=False)
    fitted, asked = (
        {(h, r) for h, r, _ in triples} | {(t, r + 3) for _, r, t in triples}
        for triples in (data.valid.queries.tolist(), rows.tolist())
    )
    assert record.test is not None
    assert record.test_unshared is not None
    assert record.test.questions == len(asked)
    assert 0 < record.test_unshared.questions == len(asked - fitted) < len(asked)


def test_a_run_without_validation_says_why_it_has_sigmoids(tmp_path: Path) -> None:
    data = dataset()
    bare = replace(data, valid=replace(data.valid, queries=data.valid.queries[:0]))
    run = fit(bare, tmp_path / "run", preset="nbfnet", changes=QUICK)
    record = run.calibrate()
    assert record.calibration.reason.startswith("There are no validation answers")
    assert record.valid is None
    assert record.test is not None
    assert set(record.test.reliability) == {"sigmoid"}
    assert run.predict("3", "grandparent", top=1)[0].probability_from == "sigmoid"
    assert record.completion.reason.startswith("Validation gives 0 proposals")
    links = run.complete("grandparent", top=3) + run.complete("grandparent", top=3, every_entity=True)
    assert {link.probability_from for link in links} == {"sigmoid"}
    assert Run.open(tmp_path / "run").calibration == record


def test_people_see_which_probability_it_is(trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    unseen = Answer("a", "r", "b", "a", "r", "b", 1, 0.5, 0.25, "isotonic", "a question", False, False, False, True)
    Console(width=120).print(answer_table([unseen]).for_people(120)[0])
    text = capsys.readouterr().out
    assert "probability: isotonic." in text
    assert "no path, head unseen" in text
    assert "unseen: train has no triple of this relation" in text
    show_calibration(trained.calibrate())
    shown = capsys.readouterr().out
    assert "ECE" in shown
    assert "cross-validation" in shown


def test_matplotlib_is_only_imported_to_draw() -> None:
    code = "import sys, kgcf.runs.run, kgcf.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
