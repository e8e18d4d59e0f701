"""The scripts that measure explanations: gold mechanisms, deletion by rule, and the paper's table 2."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgcf.data import registry
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.deletion import trace_deletions
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
    rule = mechanisms.Rule("own", "mean")
    smaller = mechanisms.Ground(case.lattice, {rule: case.importance.values}).without(0, count)
    paths = mechanisms.find_best_paths(smaller.lattice, smaller.values[rule], 10_000).paths
    every = case.best_paths(10_000).paths
    wanted = [path for path in every if all(edge.relation % count != 0 for edge in path.edges)]
    assert 0 < len(wanted) < len(every)
    assert {path.triples: path.weight for path in paths} == pytest.approx({p.triples: p.weight for p in wanted})


def test_rivals_are_distinct_and_random_ones_have_the_lengths_of_the_best() -> None:
    mechanisms, case = script("mechanisms"), a_case()
    rules = (mechanisms.Rule("own", "mean"), mechanisms.Rule("own", "sum"))
    ground = mechanisms.Ground(case.lattice, dict.fromkeys(rules, case.importance.values))
    found = dict(mechanisms.rivals(ground, np.random.default_rng(0)))
    assert len(found) == 5
    for paths in found.values():
        assert len({path.triples for path in paths}) == len(paths)
    lengths = [len(path) for path in found["shortest"]]
    assert lengths == sorted(lengths)
    assert lengths == [len(path) for path in case.shortest_paths(len(lengths))]
    best, drawn = found["explanation, own-sum"], found["random, lengths of own-sum"]
    spare = sorted(len(path) for path in best)
    for path in drawn:
        spare.remove(len(path))  # each length is taken at most as often as the best have it
    assert len(drawn) > len(best) / 2


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


def test_deletion_is_measured_on_the_split_and_by_the_rule_asked_for(run: Run) -> None:
    explanations = script("explanations")
    rules = {n: (r.layers, r.weighting, r.attribution) for n, r in explanations.RULES.items()}
    assert rules["own-mean"] == ("own", "mean", "gradient")
    assert rules["integrated-all-sum"] == ("all", "sum", "integrated")
    report = explanations.measure(run, "test", 6, 3, ["own-mean", "all-sum"])
    assert report["protocol"]["split"] == "test"
    observed = run.observe(None, "train")
    drawn = run.data.test.queries[np.random.default_rng(3).permutation(len(run.data.test.queries))[:6]]
    for name, layers, weighting in (("own-mean", "own", "mean"), ("all-sum", "all", "sum")):
        cases = [open_case(observed, h, r, t, "triple", layers) for h, r, t in drawn.tolist()]  # type: ignore[arg-type]
        curve = trace_deletions(cases, np.random.default_rng(3), weighting=weighting)  # type: ignore[arg-type]
        found = report["deletion"][name]
        assert found["triples"] + found["without_path"] + found["without_random"] == 6
        assert [point["top_drop"] for point in found["points"]] == pytest.approx(curve.drops["top"].mean(axis=0))


def test_table_two_says_what_explain_says(run: Run, tmp_path: Path) -> None:
    table2 = script("table2")
    queries = table2.draw_queries(run.data, 2, 0)
    text = "\n".join(table2.table(run, queries, 2, "queries: two"))
    assert "Dataset tiny, preset default, 1 epochs, training seed 0, validation MRR 0." in text
    for head, relation, tail in queries:
        found = run.explain(head, relation, tail, top=2, observed="train")
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
