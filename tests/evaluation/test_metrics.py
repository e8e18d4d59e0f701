"""Metrics of ranks worked out by hand, by simulation, and by PyKEEN on the same scores."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pykeen.evaluation import RankBasedEvaluator

from kgcf.data.dataset import Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.evaluation.bootstrap import bootstrap
from kgcf.evaluation.metrics import TIE_POLICIES, hits_of_sample, summarise
from kgcf.evaluation.ranks import Ranks, rank_answers


def ranks_of(better: list[int], equal: list[int], candidates: list[int]) -> Ranks:
    half = len(better) // 2
    triples = np.zeros((half, 3), dtype=np.int32)
    return Ranks(
        triples, np.repeat([0, 1], half).astype(np.int8), np.array(better), np.array(equal), np.array(candidates)
    )


def test_by_hand() -> None:
    found = summarise(ranks_of([0, 3], [0, 2], [10, 20]), "realistic")  # ranks 1 and 5
    assert found["inverse_harmonic_mean_rank"] == pytest.approx((1 + 1 / 5) / 2)
    assert found["arithmetic_mean_rank"] == 3
    assert found["hits_at_1"] == found["hits_at_3"] == 0.5
    assert found["hits_at_5"] == 1
    assert found["adjusted_arithmetic_mean_rank"] == pytest.approx(3 / 8)
    assert found["adjusted_arithmetic_mean_rank_index"] == pytest.approx(1 - 2 / 7)
    assert summarise(ranks_of([], [], []), "realistic") == {"count": 0}


def test_chance_has_an_adjusted_index_of_zero() -> None:
    generator = np.random.default_rng(0)
    better = generator.integers(0, 100, 40_000)
    found = summarise(ranks_of(better.tolist(), [0] * 40_000, [100] * 40_000), "realistic")
    assert abs(found["adjusted_arithmetic_mean_rank_index"]) < 0.02


def test_hits_of_a_sample_equal_drawing_negatives() -> None:
    generator = np.random.default_rng(0)
    for better, candidates in ((0, 30), (5, 101), (40, 101), (29, 30)):
        drawn = generator.random((20_000, 49)) < better / (candidates - 1)
        simulated = (drawn.sum(axis=1) < 10).mean()
        estimated = hits_of_sample(np.array([better + 1.0]), np.array([candidates]), 10, 50)[0]
        assert estimated == pytest.approx(simulated, abs=0.012)


def test_the_interval_has_the_size_theory_predicts() -> None:
    values = np.random.default_rng(1).random(2000)
    found = bootstrap(values, np.random.default_rng(2))
    error = values.std(ddof=1) / np.sqrt(2000)
    assert found.standard_error == pytest.approx(error, rel=0.1)
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.3 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.3 * error)


class _Scores:
    def __init__(self, table: NDArray[np.float32]) -> None:
        self.table = table

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.table[heads, relations]


def test_agreement_with_pykeen() -> None:
    generator = np.random.default_rng(3)
    rows = np.stack([generator.integers(0, 30, 300), generator.integers(0, 4, 300), generator.integers(0, 30, 300)], 1)
    known = KnowledgeGraph.build(rows, 30, 4)
    split = Split("test", known, known.triples[:80], known, Vocabulary.numbered(30))
    table = generator.integers(0, 12, (30, 8, 30)).astype(np.float32)
    ours = rank_answers(_Scores(table), split)
    judge = RankBasedEvaluator(clear_on_finalize=False)
    truths = set(map(tuple, known.triples.tolist()))
    for side in ("tail", "head"):
        scores, own = _masked(table, split.queries, truths, side)
        judge.process_scores_(torch.tensor(split.queries.tolist()), side, scores, own)
    theirs = judge.finalize()
    for policy in TIE_POLICIES:
        for name, value in summarise(ours, policy).items():
            known_there = not name.startswith("adjusted") or policy == "realistic"
            if name not in ("count", "hits_at_10_of_50") and known_there:
                assert theirs.get_metric(f"both.{policy}.{name}") == pytest.approx(value, rel=1e-6), (policy, name)


def _masked(
    table: NDArray[np.float32], queries: NDArray[np.int32], truths: set[tuple[int, int, int]], side: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """PyKEEN's input: scores with known truths as NaN, and the score of the answer."""
    scores, own = [], []
    for h, r, t in queries.tolist():
        head, relation, answer = (h, r, t) if side == "tail" else (t, r + 4, h)
        row = table[head, relation].copy()
        own.append([row[answer]])
        for e in range(30):
            fact = (h, r, e) if side == "tail" else (e, r, t)
            if e != answer and fact in truths:
                row[e] = np.nan
        scores.append(row)
    return torch.tensor(np.array(scores)), torch.tensor(np.array(own))
