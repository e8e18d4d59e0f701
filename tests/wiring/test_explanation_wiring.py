"""Explanations through a run: what is seen, hidden and asked, against the model asked directly."""

from pathlib import Path
from typing import Any

import pytest

import kgcf
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.how import How
from tests.wiring.conftest import CHANGES, Town
from tests.wiring.raw import CLOSE, Oracle, Triple


def of_train(town: Town, relation: str) -> Triple:
    """A triple of train that other paths support."""
    for triple in town.raw.train:
        h, r, t = triple
        if r == relation and town.run.explain(h, r, t, observed="train", attribution="gradient").paths:
            return triple
    raise AssertionError("no such triple")


def triples_of(found: Explanation) -> set[Triple]:
    """The triples on the paths, as the files have them."""
    return {
        (e.tail.label, e.relation.label, e.head.label) if e.inverse else (e.head.label, e.relation.label, e.tail.label)
        for path in found.paths
        for e in path.edges
    }


@pytest.mark.parametrize("asked", ["tail", "head"])
@pytest.mark.parametrize("observed", ["all", "train"])
def test_a_known_triple_is_explained_without_itself(town: Town, observed: Any, asked: Any) -> None:
    seen = town.raw.all if observed == "all" else {*town.raw.train}
    triple = of_train(town, "grandparent")
    h, r, t = triple
    found = town.run.explain(h, r, t, top=20, asked=asked, observed=observed, attribution="gradient")
    oracle = Oracle(town.run, seen - {triple})
    given, answer = (h, t) if asked == "tail" else (t, h)
    reached, logit = oracle.answers(given, r, asked)[answer]
    assert (found.head.label, found.relation.label, found.tail.label) == triple
    assert (found.asked, found.known, found.hidden, found.reached) == (asked, True, 1, reached)
    assert found.logit == pytest.approx(logit, abs=CLOSE)
    assert triples_of(found) <= seen - {triple}
    assert found.paths
    assert all((p.edges[0].head.label, p.edges[-1].tail.label) == (given, answer) for p in found.paths)
    assert found.counterfactual is not None
    assert found.counterfactual.factual_treatment == oracle.treated(triple)
    assert found.counterfactual.counterfactual_treatment != found.counterfactual.factual_treatment


def test_explanations_observe_everything_unless_told_otherwise(town: Town) -> None:
    h, r, t = town.raw.valid[0]
    assert town.run.explain(h, r, t).known
    found = town.run.explain(h, r, t, observed="train")
    assert not found.known
    assert found.hidden == 0
    assert found.logit == pytest.approx(town.train.answers(h, r)[t][1], abs=CLOSE)


def test_choices_of_an_explanation_arrive(town: Town) -> None:
    h, r, t = of_train(town, "grandparent")
    default = town.run.explain(h, r, t)
    chosen = (default.attribution, default.weighting, default.layers, default.asked)
    assert chosen == ("removal", "mean", "own", "tail")
    assert town.run.explain(h, r, t, candidates=1).tried < default.tried
    heaviest = How(attribution="gradient", top=50)
    plain = town.run.explain(h, r, t, how=heaviest)
    assert len(town.run.explain(h, r, t, how=heaviest, top=1).paths) == 1
    assert len(plain.deletion) > 0
    assert town.run.explain(h, r, t, how=heaviest, check=False).deletion == ()
    for name, value in (("weighting", "sum"), ("layers", "all"), ("attribution", "integrated")):
        other = town.run.explain(h, r, t, how=heaviest, **{name: value})  # type: ignore[arg-type]
        assert getattr(other, name) == value
        if name != "layers":  # with two layers, an edge of these paths acts in one of them only
            assert [p.weight for p in other.paths] != [p.weight for p in plain.paths]


def test_a_run_that_hides_pairs_explains_without_the_pair(town: Town, tmp_path: Path) -> None:
    """The two are linked twice: an explanation of one link must not see the other."""
    for name in ("train", "valid", "test"):
        rows = [*getattr(town.raw, name)]
        if name == "train":
            first = next(row for row in rows if row[1] == "parent")
            rows.append((first[0], "friend", first[2]))
        (tmp_path / f"{name}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    for remove, hidden in (("pair", 2), ("triple", 1)):
        changes = (*CHANGES, "training.epochs=1", f"training.remove={remove}", "objective.answers=1")
        run = kgcf.fit(tmp_path, tmp_path / remove, changes=changes)
        found = run.explain(*first, observed="train", attribution="gradient")
        assert found.hidden == hidden
        assert ((first[0], "friend", first[2]) in triples_of(found)) == (remove == "triple")


def test_a_new_graph_is_explained_by_its_own_paths(town: Town) -> None:
    rows = [
        ("anna", "parent", "ben"),
        ("ben", "parent", "cleo"),
        ("cleo", "parent", "dora"),
        ("dora", "friend", "anna"),
    ]
    found = town.run.explain("anna", "grandparent", "cleo", graph=rows, attribution="gradient")
    assert found.paths
    assert triples_of(found) <= {*rows}
