"""How many triples are treated: the leak of a triple's own edge made visible (docs/counterfactuals.md)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.treatment import Treatment
from kgcf.data.dataset import Dataset
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove, hide_by_rule
from kgcf.data.negatives import draw_negatives


@dataclass(frozen=True)
class TreatmentShares:
    """Shares treated; None where there is nothing to count.

    If `train` is far above `valid` but `train_left_out` is near it, a triple's own edge makes its treatment.
    """

    train: float | None  # positives on the full graph
    train_left_out: float | None  # positives, each without what a training query hides
    train_negatives: float | None  # strict negatives of the train queries, on the full graph
    train_negatives_left_out: float | None  # the same, each without what its query hides
    valid: float | None
    valid_negatives: float | None


def treatment_shares(data: Dataset, treatment: Treatment, seed: int = 0, remove: Remove = "triple") -> TreatmentShares:
    """One negative per positive: the tail replaced by a uniform entity that gives no known truth."""
    generator = np.random.default_rng(seed)
    graph = data.graph
    queries, negatives = wrong_tails(graph.triples, graph, generator)
    heads, relations, answers = queries.T
    hidden = hide_by_rule(graph, heads, relations, np.stack([answers, negatives], axis=1), remove)
    valid = data.valid.queries if data.valid.observed is graph else np.zeros((0, 3), np.int32)
    valid_queries, valid_negatives = wrong_tails(valid, data.valid.known, generator)
    return TreatmentShares(
        train=_mean(treatment.treated_triples(graph.triples)),
        train_left_out=_mean(treatment.treated_triples(graph.triples, leave_one_out=True, remove=remove)),
        train_negatives=_mean(treatment.treated(heads, relations, negatives[:, None])),
        train_negatives_left_out=_mean(treatment.treated(heads, relations, negatives[:, None], hidden)),
        valid=_mean(treatment.treated_triples(valid)),
        valid_negatives=_mean(treatment.treated(valid_queries[:, 0], valid_queries[:, 1], valid_negatives[:, None])),
    )


def wrong_tails(
    triples: NDArray[np.int32], known: KnowledgeGraph, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[Q, 3] queries and [Q] a strict negative of each; a query that every entity answers is left out."""
    queries = triples.astype(np.int64).reshape(-1, 3)
    drawn, possible = draw_negatives(known, queries[:, 0], queries[:, 1], 1, generator)
    return queries[possible], drawn[possible, 0]


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if values.size else None
