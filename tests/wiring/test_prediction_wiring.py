"""Answers of a run against its model asked directly on graphs built from the raw files."""

import csv
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import kgcf
from kgcf.explanation.explained_answers import explain_answers
from kgcf.prediction.answers import Question
from kgcf.prediction.calibration.completed_links import uncalibrated
from kgcf.prediction.completion import estimate_seconds, plan_completion
from kgcf.prediction.entity_links import missing_links
from kgcf.prediction.outputs import write_answers
from tests.wiring.conftest import CHANGES, Town
from tests.wiring.raw import CLOSE, Opinion, Oracle, Triple


def unknown_to_train(town: Town) -> list[Triple]:
    """Truths that only valid and test have, about entities that train knows."""
    seen = {end for h, _, t in town.raw.train for end in (h, t)}
    return [(h, r, t) for h, r, t in [*town.raw.valid, *town.raw.test] if h in seen and t in seen]


def near(one: Opinion, two: Opinion) -> bool:
    return one[0] == two[0] and abs(one[1] - two[1]) <= CLOSE


@pytest.mark.parametrize("observed", ["all", "train"])
@pytest.mark.parametrize("asked", ["tail", "head"])
def test_predictions_see_what_was_asked_to_be_observed(town: Town, observed: str, asked: str) -> None:
    oracle, seen = (
        (town.everything, town.raw.all) if observed == "all" else (town.train, {*town.raw.train})
    )  # fmt: skip
    assert observed in ("all", "train")
    for h, r, t in unknown_to_train(town)[:6]:
        given = h if asked == "tail" else t
        question = {"head": h} if asked == "tail" else {"tail": t}
        answers = town.run.predict(**question, relation=r, top=99, show_known=True, observed=observed)  # type: ignore[arg-type]
        opinions = oracle.answers(given, r, asked)
        others = {answer.tail if asked == "tail" else answer.head for answer in answers}
        assert others == {*town.raw.entities} - {given}  # no relation of the town has self-loops
        assert len(answers) == len(others)
        for answer in answers:
            other = answer.tail if asked == "tail" else answer.head
            assert (answer.head if asked == "tail" else answer.tail) == given
            triple = (given, r, other) if asked == "tail" else (other, r, given)
            assert answer.known == (triple in seen)
            reached, logit = opinions[other]
            assert answer.reached == reached
            assert answer.logit == (pytest.approx(logit, abs=CLOSE) if reached else None)
            known = {a.tail if asked == "tail" else a.head for a in answers if a.known}
            rivals = [opinion for name, opinion in opinions.items() if name not in (other, given, *known)]
            better = sum(rival > (reached, logit + CLOSE) for rival in rivals)
            assert better <= answer.rank - 1 <= better + sum(near(rival, (reached, logit)) for rival in rivals)
        ranked = (opinions[answer.tail if asked == "tail" else answer.head] for answer in answers)
        places = [(not reached, -logit) for reached, logit in ranked]
        assert all(first <= (second[0], second[1] + CLOSE) for first, second in pairwise(places))


def test_logits_never_contradict_ranks(town: Town, tmp_path: Path) -> None:
    """Answers without a path rank last whatever their own head says of them, so they have no logit anywhere."""
    opinions = town.train.answers("e3", "friend").values()
    assert max(logit for reached, logit in opinions if not reached) > min(
        logit for reached, logit in opinions if reached
    )
    answers = town.run.predict("e3", "friend", top=99, observed="train")
    said = [a.logit for a in answers]
    assert said[-1] is None
    shown = [logit for logit in said if logit is not None]
    assert shown == sorted(shown, reverse=True)
    assert said[len(shown) :] == [None] * (len(said) - len(shown))
    assert answers.to_pandas()["logit"].isna().tolist() == [logit is None for logit in said]
    assert "None" not in repr(answers[-3:])
    for kind in (".tsv", ".csv", ".parquet", ".jsonl"):
        write_answers(answers, tmp_path / f"answers{kind}")
    with (tmp_path / "answers.tsv").open() as file:
        assert [row["logit"] for row in csv.DictReader(file, delimiter="\t")][-1] == ""
    assert json.loads((tmp_path / "answers.jsonl").read_text().splitlines()[-1])["logit"] is None
    assert pq.read_table(tmp_path / "answers.parquet")["logit"].to_pylist() == said


def test_known_answers_are_left_out_unless_shown(town: Town) -> None:
    h, r, t = unknown_to_train(town)[0]
    assert t not in {a.tail for a in town.run.predict(h, r, top=99)}
    assert t in {a.tail for a in town.run.predict(h, r, top=99, observed="train")}
    shown = {a.tail: a for a in town.run.predict(h, r, top=99, show_known=True)}
    assert shown[t].known
    new = [a.rank for a in shown.values() if not a.known]
    assert new[0] == 1
    assert len(town.run.predict(h, r, top=3)) == 3
    assert len(town.run.predict(h, r)) == 10


def test_only_candidates_answer(town: Town) -> None:
    h, r, _ = unknown_to_train(town)[0]
    found = town.run.predict(h, r, candidates=["e3", "e2", "lone 1"], show_known=True)
    assert {a.tail for a in found} == {"e3", "e2", "lone 1"}


def test_relations_between_two_entities(town: Town) -> None:
    h, _, t = unknown_to_train(town)[0]
    for observed, oracle, seen in (
        ("all", town.everything, town.raw.all),
        ("train", town.train, {*town.raw.train}),
    ):
        found = town.run.predict(head=h, tail=t, show_known=True, observed=observed)  # type: ignore[arg-type]
        assert sorted(a.relation for a in found) == town.raw.relations
        for answer in found:
            reached, logit = oracle.answers(h, answer.relation)[t]
            assert (answer.reached, answer.known) == (reached, (h, answer.relation, t) in seen)
            assert answer.logit == (pytest.approx(logit, abs=CLOSE) if reached else None)
        said = [a.logit for a in found if a.logit is not None]
        assert said == sorted(said, reverse=True)


def test_a_scored_triple_is_hidden_from_its_own_question(town: Town) -> None:
    """Every triple is scored as on a graph without it, whether the graph has it or not."""
    asked = [*town.raw.train[:70:7], *unknown_to_train(town)[:4], ("e1", "friend", "e30")]
    for observed, rows in (("all", town.raw.all), ("train", {*town.raw.train})):
        scores = town.run.score(asked, observed=observed)  # type: ignore[arg-type]
        plain = Oracle(town.run, rows)
        moved = 0
        for triple, score in zip(asked, scores, strict=True):
            h, r, t = triple
            own = Oracle(town.run, [row for row in rows if row != triple]).answers(h, r)[t][1]
            assert score == pytest.approx(own, abs=CLOSE)
            moved += abs(plain.answers(h, r)[t][1] - own) > 10 * CLOSE
        assert moved > 4  # so that the test can tell


def test_a_run_that_hides_pairs_scores_without_the_pair(town: Town, tmp_path: Path) -> None:
    """Two are linked twice: with `pair` the score of one link does not see the other."""
    first = next(row for row in town.raw.train if row[1] == "parent")
    rows = [*town.raw.train, (first[0], "friend", first[2])]
    for name, lines in (("train", rows), ("valid", town.raw.valid), ("test", town.raw.test)):
        (tmp_path / f"{name}.txt").write_text("".join("\t".join(row) + "\n" for row in lines))
    for remove in ("pair", "triple"):
        changes = (*CHANGES, "training.epochs=1", f"training.remove={remove}")
        run = kgcf.fit(tmp_path, tmp_path / remove, changes=changes)
        together = {first} if remove == "triple" else {row for row in rows if {row[0], row[2]} == {first[0], first[2]}}
        assert len(together) == (2 if remove == "pair" else 1)
        own = Oracle(run, [row for row in rows if row not in together]).answers(first[0], first[1])[first[2]]
        assert float(run.score([first], observed="train")[0]) == pytest.approx(own[1], abs=CLOSE)


def test_many_triples_are_scored_as_one_by_one(town: Town) -> None:
    rows = (town.raw.train * 3)[:150]
    together = town.run.score(rows)
    assert together == pytest.approx([town.run.score([row])[0] for row in rows], abs=CLOSE)


@pytest.mark.parametrize("every_entity", [False, True])
@pytest.mark.parametrize("observed", ["all", "train"])
def test_completion_proposes_every_reached_new_triple_and_no_other(
    town: Town, every_entity: bool, observed: str
) -> None:
    oracle, seen = (town.everything, town.raw.all) if observed == "all" else (town.train, {*town.raw.train})
    asked = ["friend", "grandparent"]
    wanted: dict[Triple, float] = {}
    unreached = 0
    for relation in asked:
        heads = {h for h, r, _ in seen if r == relation or every_entity} | (
            {*town.raw.entities} if every_entity else set()
        )
        tails = {t for _, r, t in seen if r == relation} if not every_entity else {*town.raw.entities}
        for h in heads:
            for t in tails - {h}:
                reached, logit = oracle.answers(h, relation)[t]
                unreached += not reached
                if reached and (h, relation, t) not in seen:
                    wanted[h, relation, t] = logit
    found = town.run.complete(asked, top=10_000, every_entity=every_entity, observed=observed)  # type: ignore[arg-type]
    assert {(a.head, a.relation, a.tail) for a in found} == set(wanted)
    assert len(found) == len(wanted)
    assert unreached > 0
    assert all(a.reached and not a.known for a in found)
    assert [a.logit for a in found] == pytest.approx([wanted[a.head, a.relation, a.tail] for a in found], abs=CLOSE)
    assert [a.rank for a in found] == list(range(1, len(found) + 1))
    best = town.run.complete(asked, top=7, every_entity=every_entity, observed=observed)  # type: ignore[arg-type]
    assert [(a.head, a.relation, a.tail) for a in best] == [(a.head, a.relation, a.tail) for a in found[:7]]


def test_completion_asks_all_relations_and_reports_progress(town: Town) -> None:
    done: list[int] = []
    found = town.run.complete(top=10_000, advance=done.append)
    assert {a.relation for a in found} == {*town.raw.relations}
    assert sum(done) == len({(h, r) for h, r, _ in town.raw.all})


def test_a_thousand_triples_are_proposed_unless_told_otherwise(town: Town) -> None:
    assert len(town.run.complete(every_entity=True, top=1001)) == 1001
    assert len(town.run.complete(every_entity=True)) == 1000


def test_the_cost_is_estimated_on_questions_of_the_task(town: Town) -> None:
    observed = town.run.observe()
    asked: list[tuple[int, int]] = []

    class Noting:
        def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> None:
            asked.extend(zip(heads.tolist(), relations.tolist(), strict=True))

    observed.__dict__["scorer"] = Noting()
    task = plan_completion(observed, ["friend", "parent"], False)
    assert estimate_seconds(observed, task) > 0
    entities, relations = observed.entities, observed.relations
    questions = {(entities.id(h), relations.id(r)) for h, r, _ in town.raw.all if r != "grandparent"}
    assert set(asked) <= questions
    assert len(set(asked)) > 4
    assert len({relation for _, relation in asked}) == 2
    assert task.question_count == len(questions)


def test_a_new_graph_is_all_that_is_seen(town: Town) -> None:
    rows = [("anna", "parent", "ben"), ("ben", "parent", "cleo"), ("cleo", "friend", "dora")]
    found = town.run.predict("anna", "grandparent", graph=rows, top=99, show_known=True)
    assert sorted(a.tail for a in found) == ["ben", "cleo", "dora"]
    assert {a.tail for a in found if a.reached} == {"ben", "cleo"}  # two layers do not reach dora
    known = town.run.predict("anna", "parent", graph=rows, top=99, show_known=True)
    assert {a.tail for a in known if a.known} == {"ben"}
    proposed = town.run.complete(["parent"], graph=rows, every_entity=True)
    assert {end for a in proposed for end in (a.head, a.tail)} <= {"anna", "ben", "cleo", "dora"}
    scores = town.run.score(rows, graph=rows)
    assert np.isfinite(scores).all()


LOOPED = [("anna", "friend", "anna"), ("ben", "friend", "cleo"), ("cleo", "friend", "ben"), ("anna", "parent", "ben")]


def test_an_entity_answers_its_own_question_where_the_relation_has_self_loops(town: Town) -> None:
    """In every list of proposals; `friend` has a self-loop in this graph, `parent` has none."""
    run = town.run
    for asked in ({"head": "ben"}, {"tail": "ben"}):
        for explained in (False, True):
            for relation, wanted in (("friend", True), ("parent", False)):
                question = Question(asked.get("head"), relation, asked.get("tail"))
                if explained:
                    rows = [e.answer for e in explain_answers(run.explainer(LOOPED), question, 99, show_known=True)]
                else:
                    rows = run.predict(*question.parts, graph=LOOPED, top=99, show_known=True)
                assert (("ben", "ben") in {(a.head, a.tail) for a in rows}) == wanted
                assert len(rows) == (3 if wanted else 2)
                assert sorted(a.rank for a in rows if not a.known)[0] == 1
    named = run.predict("ben", "parent", graph=LOOPED, candidates=["ben", "cleo"])
    assert [a.tail for a in named] == ["cleo"]
    for every_entity in (False, True):
        proposed = run.complete(graph=LOOPED, every_entity=every_entity)
        assert {(a.head, a.relation) for a in proposed if a.head == a.tail} == {("ben", "friend"), ("cleo", "friend")}
    assert {a.relation for a in run.predict(head="ben", tail="ben", graph=LOOPED)} == {*town.raw.relations}


def test_the_missing_links_of_an_entity_have_its_self_loop_once(town: Town) -> None:
    observed = town.run.observe(LOOPED)
    found = missing_links(observed, observed.entities.id("ben"), uncalibrated("seen"))
    assert [(a.head, a.relation) for a in found if a.head == a.tail] == [("ben", "friend")]
