"""The weights of a blend: those that validation asks for, shrunk where it says little, none where it gains nothing."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from kgcf.prediction.blending.fitting import fit_blend
from kgcf.prediction.blending.recall import blend_row
from kgcf.prediction.blending.reciprocal_ranks import LOSSES, WEIGHTS, ReciprocalRanks
from kgcf.prediction.blending.trial_kernels import rank_under_all


def ranks_of(best: NDArray[np.int64], relations: NDArray[np.int64], gain: float, noise: float = 0.1) -> ReciprocalRanks:
    """Answers whose reciprocal rank is highest at one weight, of the relation's own; the second loss is best."""
    generator = np.random.default_rng(0)
    count = len(relations)
    paths = np.full(count, 0.4)
    distance = np.abs(np.arange(len(WEIGHTS)) - best[relations][:, None])
    both = 0.4 + gain * (1 - distance / 4)[:, None, :] - 0.05 * np.abs(np.arange(len(LOSSES)) - 1)[None, :, None]
    both = both + noise * generator.standard_normal((count, 1, 1))
    both[:, :, 0] = paths[:, None]
    return ReciprocalRanks(np.arange(count), relations, paths, np.full(count, 0.3), both)


def test_every_relation_gets_its_own_weight_where_validation_has_enough() -> None:
    relations = np.repeat([0, 1, 2, 3], [400, 400, 400, 2])
    found = fit_blend(ranks_of(np.array([4, 8, 6, 10]), relations, 0.2), 2)
    assert found.used
    assert found.weights[:3] == (WEIGHTS[4], WEIGHTS[8], WEIGHTS[6])
    assert found.common == WEIGHTS[6]
    assert found.weights[3] == found.common  # two answers do not outweigh the others
    assert found.unreached == LOSSES[1]
    assert found.shrinkage is not None
    assert found.reason.startswith("Memory is used: validation MRR 0.4000 by paths alone, 0.3000 by memory alone")


def test_one_weight_for_all_where_relations_do_not_differ() -> None:
    found = fit_blend(ranks_of(np.array([5, 5]), np.repeat([0, 1], 300), 0.2), 1)
    assert set(found.weights) == {found.common} == {WEIGHTS[5]}
    assert found.shrinkage is None


def test_without_a_gain_memory_is_not_used_unless_it_must_be() -> None:
    ranks = ranks_of(np.array([0, 0]), np.repeat([0, 1], 300), 0.0, noise=0.0)
    ranks.both[:, :, 1:] -= 0.1
    found = fit_blend(ranks, 1)
    assert not found.used
    assert found.reason.startswith("Memory is not used, for there is no certain gain")
    forced = fit_blend(ranks, 1, "on")
    assert forced.used
    assert "because memory.enabled is on" in forced.reason


def test_the_gain_is_that_of_weights_fitted_on_other_questions() -> None:
    """Pure noise has a best weight for the answers it is fitted on, and no gain for others."""
    generator = np.random.default_rng(1)
    both = generator.random((60, len(LOSSES), len(WEIGHTS)))
    paths = np.full(60, 0.5)
    both[:, :, 0] = 0.5
    found = fit_blend(ReciprocalRanks(np.arange(60), np.arange(60) % 20, paths, paths, both), 10)
    fitted = both.mean(axis=0).max() - 0.5
    assert found.figures["gain"] < fitted - 0.02
    assert not found.used


def test_answers_of_one_question_stay_together() -> None:
    """Each question has a weight of its own that helps all its answers: nothing that another question could learn."""
    relations, questions = np.zeros(60, dtype=np.int64), np.repeat(np.arange(6), 10)
    both = np.full((60, len(LOSSES), len(WEIGHTS)), 0.3)
    both[np.arange(60), :, 1 + questions] = 0.9
    both[:, :, 0] = 0.4
    found = fit_blend(ReciprocalRanks(questions, relations, both[:, 0, 0], both[:, 0, 0], both), 1)
    assert not found.used
    assert found.figures["both"] <= 0.4


def test_the_unreached_lose_what_their_ranks_ask_for_where_mrr_hardly_cares() -> None:
    """One answer in ten is unreached: its rank falls from 5,000 to 500 as it loses less, at next to no cost in MRR."""
    count, relations = 400, np.zeros(400, dtype=np.int64)
    both = np.full((count, len(LOSSES), len(WEIGHTS)), 0.6)
    both[:40] = 1 / 5000
    both[:, :, 0] = 0.5
    both[:40, 2] = 1 / 500
    both[40:, 2] -= 0.0003
    both[:40, 1] = 1 / 50
    both[40:, 1] -= 0.02  # so much less that a low place is better
    ranks = ReciprocalRanks(np.arange(count), relations, both[:, 0, 0], both[:, 0, 0], both)
    assert fit_blend(ranks, 1).unreached == LOSSES[2]


def test_ranks_under_all_weights_are_those_of_the_formula() -> None:
    """Against the blend itself, row by row, with ties, known answers and entities that memory does not know."""
    generator = np.random.default_rng(2)
    weights, losses = np.array(WEIGHTS, dtype=np.float32), np.array(LOSSES, dtype=np.float32)
    for _ in range(20):
        logits = (generator.integers(-3, 4, 60) / 2).astype(np.float32)
        reached, rivals = generator.random(60) < 0.6, generator.random(60) < 0.8
        known = np.sort(generator.choice(60, 40, replace=False))
        opinion = np.zeros(60, dtype=np.float32)
        opinion[known] = generator.integers(-4, 5, 40) / 4
        answer = int(generator.integers(60))
        found = np.empty((len(losses), len(weights)))
        rank_under_all(logits, reached, opinion, rivals, answer, weights, losses, found)
        for (s, loss), (w, weight) in product(enumerate(losses), enumerate(weights)):
            row = logits.copy()
            blend_row(row, reached, known, opinion[known], weight, loss)
            others = np.delete(row, np.flatnonzero(~rivals | (np.arange(60) == answer)))
            wanted = 1 + np.sum(others > row[answer]) + np.sum(others == row[answer]) / 2
            assert found[s, w] == wanted
