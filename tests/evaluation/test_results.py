"""Evaluations end to end: breakdowns add up, the protocol is complete, WN18RR's symmetry is found."""

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from kgcf.baselines.frequency import FrequencyScorer
from kgcf.cli.evaluation_tables import breakdown_tables, evaluation_table
from kgcf.data import registry
from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import DataError
from kgcf.evaluation.results import evaluate
from kgcf.screen import Screen


class SymmetryScorer:
    """Answers with the entities whose exact reverse triple (t, r, h) is in the graph, and nothing else."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        scores = np.zeros((len(heads), self.graph.entity_count), dtype=np.float32)
        for row, head, relation in zip(scores, heads, self.graph.inverse(relations), strict=True):
            row[self.graph.tails(int(head), int(relation))] = 1
        return scores


def test_frequency_counts_what_it_says() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [2, 0, 1], [0, 0, 3], [1, 1, 3]], 4, 2)
    scores = FrequencyScorer(graph).score_tails(np.array([0, 3]), np.array([0, 2]))
    assert scores.tolist() == [[0, 2, 0, 1], [2, 0, 1, 0]]


def test_relations_with_one_name_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    data = registry.load("world")
    result = evaluate(FrequencyScorer(data.graph), data, model="frequency", limit=20)
    first, second = sorted(result.per_relation, key=lambda label: -result.per_relation[label]["both"]["count"])[:2]
    Screen().print(breakdown_tables(result, data.relations.with_names({first: "[same]", second: "[same]"})))
    text = " ".join(capsys.readouterr().out.replace("│", "").split())
    assert text.count("[same]") == 2
    assert text.count(f"({first.split()[0]}") >= 1


def test_breakdowns_add_up_on_world() -> None:
    data = registry.load("world")
    result = evaluate(FrequencyScorer(data.graph), data, model="frequency")
    both, tail, head = (result.metrics[side]["realistic"] for side in ("both", "tail", "head"))
    assert both["count"] == tail["count"] + head["count"] == 2 * len(data.test)
    assert both["inverse_harmonic_mean_rank"] == pytest.approx(
        (tail["inverse_harmonic_mean_rank"] + head["inverse_harmonic_mean_rank"]) / 2
    )
    for table in (result.per_relation, result.per_category):
        assert sum(entry["both"]["count"] for entry in table.values()) == both["count"]
        weighted = sum(e["both"]["count"] * e["both"]["inverse_harmonic_mean_rank"] for e in table.values())
        assert weighted / both["count"] == pytest.approx(result["mrr"])
    interval = result.intervals["mrr"]
    assert interval.low < result["mrr"] < interval.high
    for policy, other in (("optimistic", "realistic"), ("realistic", "pessimistic")):
        better, worse = (result.metrics["both"][p]["inverse_harmonic_mean_rank"] for p in (policy, other))
        assert better > worse
    written = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert written["mrr"] == result["mrr"]
    assert written["metrics"]["both"]["realistic"]["hits_at_10"] == written["hits@10"]
    needed = {"dataset", "split", "model", "ties", "filter", "candidates", "seed", "commit", "processor", "seconds"}
    assert needed <= set(written["protocol"])
    assert len(evaluation_table({"frequency": result}).rows) == 1
    assert breakdown_tables(result, data.relations).renderables


def test_a_limit_draws_the_same_triples_for_the_same_seed() -> None:
    data = registry.load("world")
    scorer = FrequencyScorer(data.graph)
    first, again, other = (evaluate(scorer, data, model="f", limit=50, seed=s) for s in (1, 1, 2))
    assert first["mrr"] == again["mrr"]
    assert (first.ranks.triples != other.ranks.triples).any()
    assert first.protocol["drawn"] == f"50 of {len(data.test)} triples at random, seed 1"
    assert first.intervals["mrr"].standard_error > 0


def test_an_empty_split_is_a_sentence() -> None:
    from kgcf.data.reader import split_table, table_from
    from kgcf.data.splitting import SplitSettings

    data = split_table(table_from([("a", "r", "b")], "tiny"), "tiny", SplitSettings(valid=0, test=0))
    with pytest.raises(DataError, match="tiny has no test triples"):
        evaluate(FrequencyScorer(data.graph), data, model="frequency")


@pytest.mark.benchmark
def test_symmetry_on_wn18rr() -> None:
    data = registry.load("wn18rr")
    result = evaluate(SymmetryScorer(data.graph), data, model="symmetry")
    assert result["mrr"] == pytest.approx(0.346, abs=0.002)
    assert result["hits@1"] == pytest.approx(0.346, abs=0.002)
    assert result["hits@10"] == pytest.approx(0.347, abs=0.002)


@pytest.mark.benchmark
def test_the_inductive_protocol_ranks_the_new_graph() -> None:
    data = registry.load("wn18rr:v1")
    result = evaluate(FrequencyScorer(data.test.observed), data, model="frequency")
    assert result.protocol["setting"] == "inductive"
    assert result.metrics["both"]["realistic"]["count"] == 2 * 188
    assert "922 entities" in result.protocol["candidates"]
