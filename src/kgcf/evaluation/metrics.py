"""Numbers made of ranks: MRR, MR, hits@k, their chance-adjusted forms, hits@10 of 50."""

from math import comb

import numpy as np
from numpy.typing import NDArray

from kgcf.evaluation.ranks import Ranks

TIE_POLICIES = ("optimistic", "realistic", "pessimistic")
HITS = (1, 3, 5, 10)
SHORT_NAMES = {
    "mrr": "inverse_harmonic_mean_rank",
    "mr": "arithmetic_mean_rank",
    "hits@1": "hits_at_1",
    "hits@3": "hits_at_3",
    "hits@5": "hits_at_5",
    "hits@10": "hits_at_10",
    "amr": "adjusted_arithmetic_mean_rank",
    "amri": "adjusted_arithmetic_mean_rank_index",
    "hits@10_50": "hits_at_10_of_50",
}


class Hits(dict[int, float]):
    """hits@k by k, ties broken realistically; any k can be asked."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        super().__init__({k: self[k] for k in HITS})

    def __missing__(self, k: int) -> float:
        return float((self._ranks.realistic <= k).mean())


def summarise(ranks: Ranks, policy: str, chosen: NDArray[np.bool_] | None = None) -> dict[str, float]:
    """All metrics of some queries (all by default) under one tie policy; names as PyKEEN writes them."""
    keep = slice(None) if chosen is None else chosen
    values: NDArray[np.float64] = getattr(ranks, policy)[keep]
    candidates = ranks.candidates[keep]
    if not len(values):
        return {"count": 0.0}
    mean, expected = float(values.mean()), float(((candidates + 1) / 2).mean())
    metrics = {
        "count": float(len(values)),
        "inverse_harmonic_mean_rank": float((1 / values).mean()),
        "arithmetic_mean_rank": mean,
        "median_rank": float(np.median(values)),
        "adjusted_arithmetic_mean_rank": mean / expected,
        "adjusted_arithmetic_mean_rank_index": 1 - (mean - 1) / (expected - 1) if expected > 1 else 0.0,
        "hits_at_10_of_50": float(hits_of_sample(values, candidates, 10, 50).mean()),
    }
    return metrics | {f"hits_at_{k}": float((values <= k).mean()) for k in HITS}


def hits_of_sample(ranks: NDArray[np.float64], candidates: NDArray[np.int64], k: int, size: int) -> NDArray[np.float64]:
    """[Q] probability of rank ≤ k among the answer and size − 1 negatives drawn at random with replacement.

    With f the share of negatives that beat the answer: Σ_{i<k} C(size−1, i) f^i (1 − f)^(size−1−i).
    """
    share = (ranks - 1) / np.maximum(candidates - 1, 1)
    draws = size - 1
    terms = [comb(draws, i) * share**i * (1 - share) ** (draws - i) for i in range(k)]
    total: NDArray[np.float64] = np.sum(terms, axis=0)
    return total
