"""Ranks against looking at every candidate, with ties, filters, repeated queries and small chunks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kgcf.data.dataset import Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import KgcfError
from kgcf.evaluation.ranks import HEAD, TAIL, rank_answers
from tests.oracles import filtered_rank, graphs


class TableScorer:
    """Scores from a table [N, 2R, N]; counts how often each query was asked."""

    def __init__(self, table: NDArray[np.float32]) -> None:
        self.table = table
        self.asked: list[tuple[int, int]] = []

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        self.asked += list(zip(heads.tolist(), relations.tolist(), strict=True))
        return self.table[heads, relations]


def split_of(known: KnowledgeGraph, seed: int) -> Split:
    """Queries drawn from the truths, some twice, and one that is no known truth."""
    generator = np.random.default_rng(seed)
    drawn = known.triples[generator.integers(0, len(known), 6)] if len(known) else known.triples
    odd = [[0, 0, known.entity_count - 1]]
    queries = np.concatenate([drawn, drawn[:1], np.array(odd, dtype=np.int32)])
    observed = KnowledgeGraph.build(known.triples[::2], known.entity_count, known.relation_count)
    return Split("test", observed, queries, known, Vocabulary.numbered(known.entity_count))


@given(graphs(), st.integers(0, 1000), st.sampled_from([1, 200, 1 << 20]))
def test_ranks_equal_the_oracle(known: KnowledgeGraph, seed: int, memory: int) -> None:
    n, kinds = known.entity_count, known.relation_count
    table = np.random.default_rng(seed).integers(0, 4, (n, 2 * kinds, n)).astype(np.float32)
    table[0, 0] = -np.inf
    split = split_of(known, seed)
    scorer = TableScorer(table)
    ranks = rank_answers(scorer, split, memory=memory)
    assert len(scorer.asked) == len(set(scorer.asked))
    count = len(split.queries)
    for i, (h, r, t) in enumerate(split.queries.tolist()):
        for place, head, relation, answer in ((i, h, r, t), (count + i, t, r + kinds, h)):
            truths = set(known.tails(head, relation).tolist()) - {answer}
            expected = filtered_rank(table[head, relation], answer, truths)
            assert (ranks.better[place], ranks.equal[place], ranks.candidates[place]) == expected
    assert ranks.side.tolist() == [TAIL] * count + [HEAD] * count


def test_tie_policies() -> None:
    known = KnowledgeGraph.build([[0, 0, 1]], 5, 1)
    table = np.zeros((5, 2, 5), dtype=np.float32)
    table[0, 0] = [2, 1, 1, 1, 0]
    split = Split("test", known, known.triples, known, Vocabulary.numbered(5))
    ranks = rank_answers(TableScorer(table), split)
    assert ranks.optimistic[0] == 2
    assert ranks.realistic[0] == 3
    assert ranks.pessimistic[0] == 4
    assert ranks.optimistic[1] == 1
    assert ranks.pessimistic[1] == 5


def test_scores_that_mean_nothing_are_refused() -> None:
    known = KnowledgeGraph.build([[0, 0, 1]], 3, 1)
    split = Split("test", known, known.triples, known, Vocabulary.numbered(3))
    table = np.zeros((3, 2, 3), dtype=np.float32)
    table[1, 1, 2] = np.nan
    with pytest.raises(KgcfError, match="NaN for head 1, relation 1"):
        rank_answers(TableScorer(table), split)
    with pytest.raises(KgcfError, match=r"scores of shape \(2, 2\), not \(2, 3\)"):
        rank_answers(TableScorer(table[:, :, :2]), split)
