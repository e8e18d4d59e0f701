"""Planted effects are found, placebos vanish, placebos computed wrongly would fire; standard errors by loops."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kgcf.causal.counterfactual.effects import Effect, estimate_effects, shared_entity_error
from kgcf.causal.counterfactual.matching import match_pairs
from kgcf.causal.embedding import EntitySpace
from kgcf.causal.treatment import assign_treatment
from kgcf.data.graph import KnowledgeGraph

from .oracles import GivenTreatment, space_of


def planted(
    seed: int, labels: NDArray[np.int32], treated: float, untreated: float
) -> tuple[KnowledgeGraph, EntitySpace, Any]:
    """Relation 1 links random pairs; relation 0 links some of them, by chance that depends on their treatment."""
    rng = np.random.default_rng(seed)
    n = len(labels)
    pairs = np.unique(rng.integers(0, n, (3 * n, 2)), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = (labels[pairs[:, 0]] > 0) & (labels[pairs[:, 0]] == labels[pairs[:, 1]])
    linked = pairs[rng.random(len(pairs)) < np.where(same, treated, untreated)]
    triples = [np.insert(linked, 1, 0, axis=1), np.insert(pairs, 1, 1, axis=1)]
    graph = KnowledgeGraph.build(np.concatenate(triples), n, 2)
    table = np.stack([labels, labels])
    heads, relations, tails = graph.triples.T
    own = (table[relations, heads] > 0) & (table[relations, heads] == table[relations, tails])
    return graph, space_of(rng.normal(size=(n, 4))), GivenTreatment(graph, table, own)


def many_labels(seed: int) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(0, 6, 400).astype(np.int32)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("treated", "untreated"), [(0.7, 0.1), (0.05, 0.5)])
def test_a_planted_effect_is_found_and_placebos_vanish(seed: int, treated: float, untreated: float) -> None:
    graph, space, treatment = planted(seed, many_labels(seed), treated, untreated)
    result = estimate_effects(graph, space, treatment, seed=seed, threads=1).per_relation[0]
    effect = result.effect
    assert effect.vanishes is False
    assert effect.estimate is not None
    assert effect.standard_error is not None
    assert abs(effect.estimate - (treated - untreated)) <= 3 * effect.standard_error
    assert result.shuffled_treatment.vanishes
    assert result.permuted_labels.vanishes


def test_without_an_effect_nothing_is_found() -> None:
    vanished = []
    for seed in range(12):
        graph, space, treatment = planted(seed, many_labels(seed), 0.3, 0.3)
        effect = estimate_effects(graph, space, treatment, seed=seed, threads=1).per_relation[0].effect
        vanished.append(effect.vanishes)
    assert sum(map(bool, vanished)) >= 11


def test_shuffling_without_matching_again_would_fire() -> None:
    """Few pairs are treated: the wrong placebo keeps most of the effect, ours does not."""
    graph, space, treatment = planted(1, many_labels(1), 0.7, 0.1)
    pairs = np.unique(graph.triples[:, [0, 2]], axis=0)
    table = match_pairs(np.insert(pairs, 1, 0, axis=1), graph, space, treatment, "observed", True, threads=1)
    difference = table.factual_outcomes.astype(float) - table.counterfactual_outcomes
    shuffled = np.random.default_rng(0).permutation(table.factual_treatments)
    wrong = np.where(shuffled, difference, -difference)
    members = np.column_stack([pairs, table.substitutes])
    error = shared_entity_error(wrong, members)
    assert Effect(float(wrong.mean()), error, len(wrong), len(wrong)).vanishes is False
    assert estimate_effects(graph, space, treatment, threads=1).per_relation[0].shuffled_treatment.vanishes


def test_permuting_labels_among_the_labelled_only_would_fire() -> None:
    """One label on a third of the entities: permuted among these it stays where it is, and so does the effect."""
    labels = (np.random.default_rng(3).random(400) < 0.33).astype(np.int32)
    graph, space, treatment = planted(3, labels, 0.7, 0.1)
    labelled = np.flatnonzero(labels)
    permuted = labels.copy()
    permuted[labelled] = np.random.default_rng(0).permutation(labels[labelled])
    wrong = GivenTreatment(graph, np.stack([permuted, permuted]), treatment.left_out)
    as_any: Any = wrong
    assert estimate_effects(graph, space, as_any, threads=1).per_relation[0].effect.vanishes is False
    assert estimate_effects(graph, space, treatment, threads=1).per_relation[0].permuted_labels.vanishes


def test_own_edges_are_left_out() -> None:
    """Disjoint edges: each is treated only because of itself, so the leak would show as a perfect effect."""
    rng = np.random.default_rng(0)
    order = rng.permutation(200).reshape(100, 2)
    others = rng.integers(0, 200, (300, 2))
    triples = np.concatenate([np.insert(order, 1, 0, axis=1), np.insert(others, 1, 1, axis=1)])
    graph = KnowledgeGraph.build(triples, 200, 2)
    treatment = assign_treatment(graph)
    effect = estimate_effects(graph, space_of(rng.normal(size=(200, 3))), treatment, threads=1).per_relation[0].effect
    assert effect.estimate is not None
    assert effect.estimate <= 0  # every r-linked pair is untreated once its own edge is out


def test_at_most_as_many_pairs_as_asked_for_and_seeded() -> None:
    graph, space, treatment = planted(2, many_labels(2), 0.5, 0.2)
    one, same, other = (
        estimate_effects(graph, space, treatment, seed=s, pairs_per_relation=50, threads=t)
        for s, t in ((0, 1), (0, 3), (1, 1))
    )
    assert one.per_relation == same.per_relation
    assert one.per_relation != other.per_relation
    assert {part.effect.drawn for part in one.per_relation.values()} == {50}
    assert one.overall.effect.drawn == 100


def test_nothing_to_match() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1]], 3, 2)
    effects = estimate_effects(graph, space_of(np.zeros((3, 2))), assign_treatment(graph), threads=1)
    assert list(effects.per_relation) == [0]
    assert effects.overall.effect == Effect(None, None, 0, 1)
    assert effects.overall.effect.vanishes is None
    empty = KnowledgeGraph.build(np.zeros((0, 3), int), 3, 2)
    nothing = estimate_effects(empty, space_of(np.zeros((3, 2))), assign_treatment(empty), threads=1)
    assert nothing.overall.effect == Effect(None, None, 0, 0)


@pytest.mark.parametrize("seed", range(30))
def test_standard_error_equals_the_double_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    values = rng.integers(-1, 2, n).astype(float)
    members = rng.integers(0, int(rng.integers(4, 60)), (n, 4))
    deviations = values - values.mean()
    total = 0.0
    for i in range(n):
        for j in range(n):
            if set(members[i].tolist()) & set(members[j].tolist()):
                total += deviations[i] * deviations[j]
    donors = float(rng.random())
    expected = np.sqrt(max(total / n**2, values.var(ddof=1) / n + donors / n**2))
    assert shared_entity_error(values, members, donors) == pytest.approx(expected, abs=1e-12)
    assert shared_entity_error(values[:1], members[:1]) is None
