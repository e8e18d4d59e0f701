"""Shares, summaries, sentences, tables and plots of small graphs; the leak must show where there is one."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from kgcf.causal.cache import Cache
from kgcf.causal.cached_stages import CausalStages
from kgcf.causal.counterfactual import Diagnostics, describe, diagnose, match_pairs, treatment_shares
from kgcf.causal.counterfactual.descriptions import example_rows, row_json
from kgcf.causal.counterfactual.diagnostics import QUANTILES, summarise
from kgcf.causal.counterfactual.effects import estimate_effects
from kgcf.causal.counterfactual.plots import plot_diagnostics
from kgcf.causal.counterfactual.shares import wrong_tails
from kgcf.causal.embedding import SpaceSettings, embed_entities
from kgcf.causal.treatment import assign_treatment
from kgcf.cli.diagnostics_tables import diagnostics_tables
from kgcf.data.dataset import Dataset, transductive
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary

from .oracles import space_of

SPACE = SpaceSettings(dimension=4, walks=2, length=8, window=2, negatives=2)


def dataset(train: NDArray[np.integer], valid: NDArray[np.integer], n: int, r: int) -> Dataset:
    names = Vocabulary([f"e{i}" for i in range(n)], {"e0": "Portugal", "e1": "Spain"})
    parts = (train.astype(np.int32), valid.reshape(-1, 3).astype(np.int32), np.zeros((0, 3), np.int32))
    return transductive("small", names, Vocabulary([f"r{i}" for i in range(r)], {"r0": "borders"}), parts)


def random_data(seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    triples = np.stack([rng.integers(0, 30, 200), rng.integers(0, 3, 200), rng.integers(0, 30, 200)], axis=1)
    return dataset(triples[:160], triples[160:], 32, 3)


def diagnosed(data: Dataset) -> Diagnostics:
    treatment, space = assign_treatment(data.graph), embed_entities(data.graph, SPACE, threads=1)
    table = match_pairs(data.graph.triples, data.graph, space, treatment, threads=1)
    return diagnose(data, table, space, treatment, threads=1)


def test_effects_and_shares_follow_the_rule_of_the_table() -> None:
    triples = random_data().graph.triples
    data = dataset(np.concatenate([triples, triples[:60, ::-1]]) % [32, 3, 32], np.zeros((0, 3), int), 32, 3)
    treatment, space = assign_treatment(data.graph), embed_entities(data.graph, SPACE, threads=1)
    table = match_pairs(data.graph.triples, data.graph, space, treatment, threads=1, remove="pair")
    found = diagnose(data, table, space, treatment, threads=1)
    assert found.remove == found.to_json()["remove"] == "pair"
    assert found.effects == estimate_effects(data.graph, space, treatment, threads=1, remove="pair").overall
    assert found.effects != estimate_effects(data.graph, space, treatment, threads=1).overall
    assert found.shares.train_left_out == found.matches.treated == pytest.approx(table.factual_treatments.mean())
    assert found.shares.train_left_out != treatment_shares(data, treatment).train_left_out


def test_namesakes_are_told_apart() -> None:
    data = random_data()
    entities = Vocabulary([f"e{i}" for i in range(32)], {f"e{i}": "Georgia" for i in range(32)})
    relations = Vocabulary(["r0", "r1", "r2"], {"r0": "borders", "r1": "borders", "r2": "knows"})
    parts = (data.train.queries, data.valid.queries, data.test.queries)
    named = transductive("small", entities, relations, parts)
    found = diagnosed(named)
    assert {part.label: part.name for part in found.relations} == {
        "r0": "borders (r0)",
        "r1": "borders (r1)",
        "r2": "knows",
    }
    assert {part["label"] for part in found.to_json()["relations"]} == {"r0", "r1", "r2"}
    space = embed_entities(named.graph, SPACE, threads=1)
    table = match_pairs(named.graph.triples, named.graph, space, assign_treatment(named.graph), threads=1)
    row = next(i for i in range(len(table)) if table.matched[i] and table.triples[i, 1] == 0)
    values = row_json(table, row, entities, relations)
    assert values["sentence"].startswith(f"For (Georgia ({values['head']}), borders (r0), Georgia ({values['tail']}))")  # type: ignore[attr-defined]
    assert f"is (Georgia ({values['substitute_head']}), Georgia ({values['substitute_tail']}))" in str(
        values["sentence"]
    )
    assert (values["head_name"], values["relation"], values["relation_name"]) == ("Georgia", "r0", "borders")
    assert values["substitute_head_name"] == values["substitute_tail_name"] == values["tail_name"] == "Georgia"


def test_the_leak_shows() -> None:
    """Pairs linked once, disjoint: every edge makes its own treatment, and without it nothing is treated."""
    train = np.array([[2 * i, 0, 2 * i + 1] for i in range(40)])
    data = dataset(train, np.array([[0, 0, 3], [4, 0, 9]]), 100, 1)
    shares = treatment_shares(data, assign_treatment(data.graph))
    assert (shares.train, shares.train_left_out) == (1.0, 0.0)
    assert shares.valid == 1.0  # all linked entities have core number 1
    assert shares.train_negatives is not None
    assert shares.train_negatives_left_out == 0.0 < shares.train_negatives


def test_negatives_are_strict_and_hopeless_queries_are_left_out() -> None:
    graph = KnowledgeGraph.build([[0, 0, t] for t in range(6)] + [[1, 0, 2]], 6, 1)
    queries, tails = wrong_tails(graph.triples, graph, np.random.default_rng(0))
    assert queries.tolist() == [[1, 0, 2]]  # 0 is linked to everybody
    assert not graph.contains(np.column_stack([queries[:, :2], tails])).any()


def test_summaries_equal_loops() -> None:
    data = random_data()
    treatment, space = assign_treatment(data.graph), embed_entities(data.graph, SPACE, threads=1)
    table = match_pairs(data.graph.triples, data.graph, space, treatment, threads=1)
    rows = np.flatnonzero(table.triples[:, 1] == 1)
    found = summarise(table, rows)
    matched = [i for i in rows if table.substitutes[i, 0] >= 0]
    by_treatment = {
        value: [bool(table.counterfactual_outcomes[i]) for i in matched if table.counterfactual_treatments[i] == value]
        for value in (False, True)
    }
    assert (found.triples, found.matched) == (len(rows), len(matched))
    assert found.outcome_untreated == pytest.approx(np.mean(by_treatment[False]))
    assert found.outcome_treated == pytest.approx(np.mean(by_treatment[True]))
    assert found.distance(0.5) == pytest.approx(np.median(table.distances[matched]))
    assert found.distances is not None
    assert len(found.distances) == len(QUANTILES)


def test_json_table_and_plot(tmp_path: Path) -> None:
    data = random_data()
    found = diagnosed(data)
    text = json.dumps(found.to_json(), allow_nan=False)
    assert json.loads(text)["effects"]["effect"]["vanishes"] in (True, False)
    assert [part["name"] for part in json.loads(text)["relations"]] == [part.name for part in found.relations]
    counts = [part.matches.triples for part in found.relations]
    assert counts == sorted(counts, reverse=True)
    buffer = io.StringIO()
    Console(file=buffer, width=100).print(diagnostics_tables(found, relations=2))
    assert "by relation, 2 of 3" in buffer.getvalue()
    assert "placebo: labels permuted" in buffer.getvalue()
    for name in ("plot.png", "plot.svg"):
        plot_diagnostics(found, tmp_path / name)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert b"</svg>" in (tmp_path / "plot.svg").read_bytes()


@pytest.mark.parametrize(
    ("train", "n", "r"),
    [
        (np.array([[0, 0, 1]]), 2, 1),
        (np.array([[0, 0, 1]]), 5, 3),
        (np.array([[0, 0, 0]]), 2, 1),
        (np.array([[0, 0, 1], [1, 0, 2], [2, 0, 0]]), 4, 1),
        (np.zeros((0, 3), int), 3, 1),
    ],
    ids=["one triple", "isolated entities and unused relations", "a self-loop", "nothing to oppose", "empty"],
)
def test_odd_graphs_are_described_without_warnings(train: NDArray[np.integer], n: int, r: int, tmp_path: Path) -> None:
    found = diagnosed(dataset(train, np.zeros((0, 3), int), n, r))
    json.dumps(found.to_json(), allow_nan=False)
    Console(file=io.StringIO()).print(diagnostics_tables(found, relations=5))
    plot_diagnostics(found, tmp_path / "plot.svg")
    assert found.shares.valid is None


def test_sentences() -> None:
    data = dataset(np.array([[0, 0, 1], [1, 0, 2], [0, 0, 2], [3, 0, 4], [4, 1, 3]]), np.zeros((0, 3), int), 6, 2)
    space = space_of(np.arange(6)[:, None])
    treatment = assign_treatment(data.graph)
    table = match_pairs([[0, 0, 1], [1, 2, 0], [5, 1, 4]], data.graph, space, treatment, "all", False)
    sentences = [describe(table, row, data.entities, data.relations) for row in range(3)]
    assert sentences[0] == (
        "For (Portugal, borders, Spain), of the same neighbourhood role (T = 1) and known, "
        "the nearest pair with the other treatment is (Spain, e3), "
        "at distance 3: (Spain, borders, e3) is not known."
    )
    start = "For (Spain, inverse of borders, Portugal), of the same neighbourhood role (T = 1) and known,"
    assert sentences[1].startswith(start)
    assert "(e3, inverse of borders, Spain)" in sentences[1]
    assert sentences[2].startswith("For (e5, r1, e4), of different neighbourhood roles (T = 0) and not known,")
    one = KnowledgeGraph.build([[0, 0, 1]], 6, 2)
    lonely = match_pairs([[0, 0, 1]], one, space, assign_treatment(one), "all", False)
    assert describe(lonely, 0, data.entities, data.relations).endswith("there is no pair with the other treatment.")
    assert row_json(lonely, 0, data.entities, data.relations)["distance"] is None


def test_examples_come_from_different_relations_first() -> None:
    data = random_data()
    table = match_pairs(
        data.graph.triples, data.graph, embed_entities(data.graph, SPACE), assign_treatment(data.graph), threads=1
    )
    rows = list(example_rows(table, 5, np.random.default_rng(0)))
    assert len({int(table.triples[row, 1]) for row in rows[:3]}) == 3
    assert len(set(rows)) == 5
    assert table.matched[rows].all()


def test_the_stage_keeps_what_it_computed(tmp_path: Path) -> None:
    data = random_data()
    notices: list[str] = []
    stage = CausalStages(Cache(tmp_path, notices.append), threads=1)
    treatment = assign_treatment(data.graph)
    space = stage.space(data.graph, SPACE)
    table = stage.table(space, treatment, "observed", True, "triple")
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 2
    again = stage.table(stage.space(data.graph, SPACE), treatment, "observed", True, "triple")
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    assert (again.substitutes == table.substitutes).all()
    stage.table(space, treatment, "all", True, "triple")
    stage.table(space, treatment, "observed", False, "triple")
    stage.space(data.graph, SPACE.model_copy(update={"seed": 1}))
    stage.space(random_data(1).graph, SPACE)
    assert len(list(tmp_path.iterdir())) == 6
    pair = stage.table(space, treatment, "observed", True, "pair")
    fresh = match_pairs(data.graph.triples, data.graph, space, treatment, threads=1, remove="pair")
    assert pair.remove == fresh.remove == "pair"
    assert (pair.substitutes == fresh.substitutes).all()
    assert (pair.substitutes != table.substitutes).any()
    assert len(list(tmp_path.iterdir())) == 7
    assert notices == ["entity space: taken from the cache", "counterfactuals: taken from the cache"]
