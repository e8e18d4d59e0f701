"""The scripts that measure explanations: gold mechanisms, deletion by rule, and the paper's table 2."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgcf.data import registry
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.explainer import find_paths
from kgcf.explanation.how import How
from kgcf.pipeline import fit
from kgcf.runs.run import Run
from tests.propagation.random_graphs import random_graph
from tests.training.tiny import TINY, dataset

from .test_case import observe

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"


def script(name: str) -> Any:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    changes = [*TINY, "training.epochs=1", "training.threads=1", "space.walks=2"]
    return fit(dataset(), tmp_path_factory.mktemp("runs") / "tiny", changes=changes)


def a_case() -> Case:
    graph = random_graph(0, entity_count=12, triple_count=80)
    observed = observe(graph)
    cases = [open_case(observed, h, r, t, "triple") for h, r, t in graph.triples[:20].tolist()]
    return max(cases, key=lambda case: len(case.best_paths(200).paths))


def test_ground_without_a_relation_has_the_paths_that_do_not_use_it() -> None:
    mechanisms, case = script("mechanisms"), a_case()
    count = case.observed.graph.relation_count
    smaller = mechanisms.Ground.of(case).without(0, count)
    paths = mechanisms.find_best_paths(smaller.lattice, smaller.gradient, 10_000).paths
    every = case.best_paths(10_000).paths
    wanted = [path for path in every if all(edge.relation % count != 0 for edge in path.edges)]
    assert 0 < len(wanted) < len(every)
    assert {path.triples: path.weight for path in paths} == pytest.approx({p.triples: p.weight for p in wanted})


def test_rivals_are_distinct_and_random_ones_have_the_lengths_of_ours() -> None:
    mechanisms, case = script("mechanisms"), a_case()
    found = dict(mechanisms.rivals(case, mechanisms.Ground.of(case), np.random.default_rng(0)))
    assert len(found) == 5
    for paths in found.values():
        assert len({path.triples for path in paths}) == len(paths)
    lengths = [len(path) for path in found["shortest"]]
    assert lengths == sorted(lengths)
    assert lengths == [len(path) for path in case.shortest_paths(len(lengths))]
    shown = [path.triples for path in find_paths(case, How(check=False)).paths]
    assert [path.triples for path in found["removal"][: len(shown)]] == shown
    drawn = found["random, lengths of removal"]
    spare = sorted(len(path) for path in found["removal"])
    for path in drawn:
        spare.remove(len(path))  # each length is taken at most as often as ours have it
    assert len(drawn) > len(found["removal"]) / 2


def test_compare_counts_whole_paths_and_edges_by_hand() -> None:
    mechanisms, case = script("mechanisms"), a_case()
    paths = case.best_paths(3).paths
    gold = [
        mechanisms.Mechanism(frozenset(paths[1].triples), 0),
        mechanisms.Mechanism(frozenset([*paths[0].triples[:1], 10_000]), 2),
    ]
    found = mechanisms.compare(paths, gold)
    first, two = set(paths[0].triples), set(paths[0].triples) | set(paths[1].triples) | set(paths[2].triples)
    curated = gold[0].triples | gold[1].triples
    assert (found["whole@1"], found["whole@5"]) == (float(first <= gold[0].triples), 1.0)
    assert found["edge_precision@1"] == len(first & curated) / len(first)
    assert found["edge_recall@5"] == len(two & curated) / len(curated)
    assert found["edges@5"] == len(two)
    travelled = list(dict.fromkeys([t for path in paths for t in path.triples]))[:5]
    assert found["edge_recall@5_edges"] == len(set(travelled) & curated) / len(curated)
    assert found["edges@5_edges"] == len(travelled)


def test_faithfulness_scores_the_sets_of_every_rival() -> None:
    faithfulness, rivals = script("faithfulness"), script("rivals")
    case = a_case()
    ours = case.best_paths(5).paths
    row = faithfulness.compare_sets(case, ours, np.random.default_rng(0))
    for name, paths in (("ours", ours), ("shortest", case.shortest_paths(20))):
        for count in (1, 3):
            edges = sorted({triple for path in paths[:count] for triple in path.triples})
            found = row[f"{count} {name}"]
            assert found["edges"] == len(edges)
            assert found["drop"] == pytest.approx(case.importance.logit - case.logits_without([np.array(edges)])[0][0])
            assert found["alone"] == pytest.approx(case.logits_alone([np.array(edges)])[0][0])
    for rival in (*rivals.RIVALS, "random"):
        suffix = "" if rival == "random" else ", as many edges"
        assert row[f"3 {rival}{suffix}"]["edges"] >= row["3 ours"]["edges"]
    report = faithfulness.point([row, row], 3, 0)
    difference = row["3 ours"]["alone"] - row["3 shortest"]["alone"]
    assert report["shortest"]["ours_minus_alone"] == pytest.approx([difference] * 3)


def test_parts_are_measured_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explanations = script("explanations")
    output = tmp_path / "report.json"
    monkeypatch.setattr(
        "sys.argv", ["explanations.py", str(run.folder.path), "--triples", "6", "--output", str(output)]
    )
    explanations.main()
    report = json.loads(output.read_text(encoding="utf-8"))
    assert {*report} == {"run", "faithfulness, removal", "speed"}
    assert report["run"]["protocol"]["split"] == "test"
    assert report["faithfulness, removal"]["asked"] == 6
    monkeypatch.setattr(explanations, "measure_faithfulness", lambda *_: pytest.fail("measured twice"))
    explanations.main()
    assert json.loads(output.read_text(encoding="utf-8")) == report


def test_words_of_a_planted_rule_reduce_to_it() -> None:
    planted = script("planted")
    a, b, back = ("a", False), ("b", False), ("a", True)
    goal, from_goal = ("goal", False), ("goal", True)
    rule = ("a", "b")
    assert planted.reduce_word((a, back, goal), rule) == (a, b)  # a detour by somebody with the same a
    assert planted.reduce_word((goal, from_goal, goal), rule) == (a, b)
    assert planted.reduce_word((a, ("f", False), b), rule) != (a, b)
    assert planted.reduce_word((back, a, b, ("b", True)), rule) != (a, b)
    graph = planted.generate(planted.Plan(rule, 0.2, 0))
    steps = {name: {h: t for h, r, t in graph["train"] if r == name} for name in "ab"}
    for split in ("valid", "test"):
        assert len(graph[split]) > 60
        assert all(r == "goal" and steps["b"][steps["a"][h]] == t for h, r, t in graph[split])
    noise = [steps["b"].get(steps["a"].get(h, ""), "") != t for h, r, t in graph["train"] if r == "goal"]
    assert 0.1 < np.mean(noise) < 0.3


def test_textbook_rules_of_the_family() -> None:
    words = script("textbook").WORDS
    textbook, derived = words["uncle"]
    assert (("brother", False), ("father", False)) in textbook  # x is the brother of y, y is the father of z
    assert (("sister", True), ("daughter", True)) in textbook
    assert (("niece", True),) in textbook
    assert (("uncle", False), ("brother", True)) in derived
    assert not textbook & derived
    assert (("son", False), ("father", True), ("mother", False)) not in textbook | derived
    assert (("son", False), ("brother", False)) in words["nephew"][0]


def test_table_two_says_what_explain_says(run: Run, tmp_path: Path) -> None:
    table2 = script("table2")
    queries = table2.draw_queries(run.data, 2, 0)
    text = "\n".join(table2.table(run, queries, 2, "queries: two"))
    assert "Dataset tiny, preset default, 1 epochs, training seed 0, validation MRR 0." in text
    for head, relation, tail in queries:
        found = run.explain(head, relation, tail, top=2, observed="train", attribution="gradient")
        assert f"⟨{head}, {relation}, {tail}⟩" in text
        assert f"test; probability {found.probability:.3f} ({found.probability_from})" in text
        for path in found.paths:
            assert f"| **{path.weight:+.4f}** | ⟨{head}, " in text
        assert found.counterfactual is not None
        if (pair := found.counterfactual.substitute) is not None:
            own = f"({int(pair.factual_treatment)}/{int(pair.counterfactual_treatment)})"
            assert f"⟨{pair.head.name}, {relation}, {pair.tail.name}⟩ {own}" in text
    known = run.data.graph.triples[0].tolist()
    names = (str(known[0]), run.data.relations.label(known[1]), str(known[2]))
    assert table2.split_of(run.data, names) == "train"
    (tmp_path / "queries.tsv").write_text("\t".join(names) + "\n", encoding="utf-8")
    assert table2.read_queries(tmp_path / "queries.tsv") == [names]


@pytest.mark.benchmark
def test_the_queries_that_the_paper_prints_are_train_triples_of_fb15k_237() -> None:
    table2, data = script("table2"), registry.load("fb15k-237")
    shown = []
    for head, relation, tail in table2.PAPER["fb15k-237"]:
        assert table2.split_of(data, (head, relation, tail)) == "train"
        shown.append([data.entities.display(data.entities.id(label)) for label in (head, tail)])
    assert shown == [
        ["Brazil (Q155)", "1972 Summer Olympics (Q8438)"],
        ["Bridesmaids (2011 film) (Q837264)", "Portugal (Q45)"],
    ]
