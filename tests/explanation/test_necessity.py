"""Paths by re-scoring, against graphs that are rebuilt and choices that are made by trying everything."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from kgcf.choices import Attribution
from kgcf.data.graph import KnowledgeGraph
from kgcf.explanation.candidates import find_candidates
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.explainer import Explainer, find_paths
from kgcf.explanation.how import How
from kgcf.explanation.necessity import choose_paths, remove_subsets, try_candidates
from kgcf.explanation.outcome import rises
from tests.propagation.random_graphs import random_graph

from .test_case import observe
from .test_counterfactual import a_space

EVERY = How(top=4, candidates=200, check=False)


def cases(context: str = "unreached", seed: int = 0, weighted: bool = False) -> Iterator[Case]:
    graph = random_graph(seed, triple_count=24)
    if weighted:
        weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(graph))
        graph = KnowledgeGraph.build(graph.triples, graph.entity_count, graph.relation_count, weights)
    observed = observe(graph, seed, context=context)
    for h, r, t in graph.triples[:12].tolist():
        case = open_case(observed, h, r, t, "triple")
        if h != t and case.importance.reached:
            yield case


def rebuilt(case: Case, kept: set[int]) -> float:
    """The logit on a graph with these triples of the case's graph only; T stays."""
    graph = case.observed.graph
    rows = sorted(kept)
    weights = None if graph.weights is None else graph.weights[rows]
    smaller = KnowledgeGraph.build(graph.triples[rows], graph.entity_count, graph.relation_count, weights)
    return score(case, smaller, case.head, case.tail)[0]


def fallen(case: Case, kept: set[int]) -> float:
    """What the score loses on such a graph; where no path is left, 1 at least."""
    rows = sorted(kept)
    weights = None if case.observed.graph.weights is None else case.observed.graph.weights[rows]
    counts = case.observed.graph.entity_count, case.observed.graph.relation_count
    smaller = KnowledgeGraph.build(case.observed.graph.triples[rows], *counts, weights)
    logit, reached = score(case, smaller, case.head, case.tail)
    return case.importance.logit - logit if reached else max(case.importance.logit - logit, 1)


def alone(case: Case, kept: set[int]) -> float:
    """The logit on the graph of these triples and their entities alone; T stays."""
    graph = case.observed.graph
    rows = sorted(kept)
    ends = sorted({case.head, case.tail, *(int(e) for row in rows for e in graph.triples[row, [0, 2]])})
    place = {entity: i for i, entity in enumerate(ends)}
    triples = [(place[h], r, place[t]) for h, r, t in graph.triples[rows].tolist()]
    weights = None if graph.weights is None else graph.weights[rows]
    smaller = KnowledgeGraph.build(triples, len(ends), graph.relation_count, weights)
    return score(case, smaller, place[case.head], place[case.tail])[0]


def score(case: Case, graph: KnowledgeGraph, head: int, tail: int) -> tuple[float, bool]:
    from kgcf.prediction.observed_graph import ObservedGraph

    old = case.observed
    observed = ObservedGraph(old.model, graph, old.entities, old.relations, None)
    treated = None if case.treated is None else np.array([[case.treated]])
    asked = (np.array([head]), np.array([case.relation]), np.array([[tail]]))
    logits, reached = observed.logits(*asked, treated=treated)
    return float(logits[0, 0]), bool(reached[0, 0])


@pytest.mark.parametrize(("context", "weighted"), [("unreached", False), ("decoder", True), ("layers", False)])
def test_drops_and_what_paths_give_alone_equal_graphs_rebuilt(context: str, weighted: bool) -> None:
    compared = 0
    for case in cases(context, weighted=weighted):
        seen = {*range(len(case.observed.graph))} - {*case.hidden.triples.tolist()}
        tried = try_candidates(case, 3)
        before = set[int]()
        chosen = find_paths(case, EVERY)
        for path, effect in zip(chosen.paths, chosen.effects, strict=True):
            before |= {*path.triples}
            assert effect.together.logit == pytest.approx(rebuilt(case, seen - before), abs=1e-10)
        for i, path in enumerate(tried.paths):
            own = {*path.triples}
            without = rebuilt(case, seen - own)
            assert tried.scored.without[i].logit == pytest.approx(without, abs=1e-10)
            assert tried.scored.drops[i] == pytest.approx(fallen(case, seen - own), abs=1e-10)
            assert tried.scored.alone[i].logit == pytest.approx(alone(case, own), abs=1e-10)
            assert tried.scored.alone[i].reached
            compared += 1
    assert compared > 20


def test_no_evidence_is_the_score_of_a_tail_that_nothing_leads_to() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 1, 2], [0, 1, 2], [3, 0, 4], [2, 0, 4]], 5, 2)
    for context in ("none", "unreached"):
        case = open_case(observe(graph, context=context), 0, 1, 2, "triple")
        (cut,) = case.without([np.array([0])])  # the head's only edge: the tail keeps its context
        assert not cut.reached
        assert not case.nothing.reached
        assert case.nothing.logit == pytest.approx(cut.logit, abs=1e-10 if context == "none" else 10)
    assert case.nothing.logit == pytest.approx(cut.logit, abs=1e-10)


def greedy_by_hand(case: Case, top: int, least: float) -> list[frozenset[int]]:
    """The same choice with a graph rebuilt for every trial; candidates are all paths."""
    seen = {*range(len(case.observed.graph))} - {*case.hidden.triples.tolist()}
    paths = [frozenset(path.triples) for path in find_candidates(case, EVERY.candidates)]

    def figures(taken: frozenset[int]) -> tuple[float, float]:
        drop = fallen(case, seen - taken)
        return drop, drop + alone(case, {*taken}) - min(case.nothing.logit, case.importance.logit - 1)

    left = [path for path in paths if fallen(case, seen - path) >= 0]
    chosen: list[frozenset[int]] = []
    drop, value = 0.0, 0.0
    while left and len(chosen) < top:
        taken = frozenset[int]().union(*chosen)
        tried = [(path, *figures(taken | path)) for path in left]
        if chosen:
            tried = [x for x in tried if x[1] >= drop - 1e-9 and (x[1] >= drop + least or x[2] >= value + least)]
        else:
            tried = [x for x in tried if x[2] >= least]
        if not tried:
            break
        best = max(tried, key=lambda item: item[2])
        chosen.append(best[0])
        left.remove(best[0])
        drop, value = best[1], best[2]
    return chosen


def test_the_greedy_choice_equals_trying_everything_on_rebuilt_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    least = 1e-4  # models of random weights differ by little
    monkeypatch.setattr("kgcf.explanation.necessity.LEAST", least)
    lengths = []
    for seed in (1, 3):
        for case in cases(seed=seed):
            tried = try_candidates(case, EVERY.candidates)
            chosen = choose_paths(case, tried, EVERY.top, finalists=1000)
            expected = greedy_by_hand(case, EVERY.top, least)
            assert [frozenset(tried.paths[i].triples) for i in chosen] == expected
            lengths.append(len(expected))
    assert {1, 2, 3} <= {*lengths}


def test_candidates_are_the_best_by_both_gradients_and_the_shortest_none_twice() -> None:
    for case in cases():
        found = {frozenset(path.triples) for path in find_candidates(case, 2)}
        integrated = open_case(case.observed, case.head, case.relation, case.tail, "triple", "own", "integrated")
        kinds = (case.best_paths(2).paths, integrated.best_paths(2).paths, case.shortest_paths(2))
        assert found == {frozenset(path.triples) for paths in kinds for path in paths}
        assert len(found) == len(find_candidates(case, 2))


def test_a_path_without_which_the_score_rises_is_never_a_reason() -> None:
    against = 0
    for case in cases():
        chosen = find_paths(case, EVERY)
        for effect in (*chosen.effects, *chosen.against_effects):
            assert effect.against == (effect.without.reached and effect.without.logit > case.importance.logit)
        assert not any(effect.against for effect in chosen.effects)
        assert all(effect.without.probability > case.probability + 0.01 for effect in chosen.against_effects)
        assert not {*chosen.paths} & {*chosen.against}
        against += len(chosen.against)
    assert against > 3


@pytest.mark.parametrize("attribution", ["removal", "gradient"])
def test_the_only_path_is_a_reason_however_high_the_head_of_the_unreached_scores(attribution: Attribution) -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 1, 2], [0, 1, 2], [3, 0, 4]], 5, 2)
    observed = observe(graph, context="unreached")
    head = observed.model.decoder.unreached
    assert head is not None
    with torch.no_grad():
        head.output.bias.add_(50)
    explainer = Explainer(observed, "triple", lambda: a_space(graph))
    found = explainer.explain("0", "1", "2", How(attribution=attribution))
    (path,) = found.reasons
    assert path.effect is not None
    assert path.effect.without.logit > found.logit + 40
    assert (path.effect.drop, path.effect.without.reached, path.effect.needed) == (1, False, True)
    assert found.carried is not None
    assert max(path.effect.without.probability, found.carried.nothing.probability) < found.probability
    assert not found.opposed
    assert all(deletion.drop == 1 for deletion in found.deletion)
    for tried, said in (
        (1, "the only one was taken away, and it does not"),
        (2, "two paths were taken away, one at a"),
    ):
        assert f"No path matters: {said}" in str(replace(found, paths=(), tried=tried))


@pytest.mark.parametrize(
    ("probability", "said"),
    [
        (0.81, "about 81 of 100"),
        (0.004, "about 4 of 1,000"),
        (0.9997, "more than 999"),
        (0.0002, "fewer than 1 of 1,000"),
    ],
)
def test_rare_truths_are_not_said_to_be_none_of_a_hundred(probability: float, said: str) -> None:
    case = next(cases())
    explainer = Explainer(case.observed, "triple", lambda: a_space(case.observed.graph))
    found = explainer.explain_case(case, How(check=False))
    assert f"one, {said}" in str(replace(found, probability=probability, probability_from="platt"))


def test_reasons_by_gradient_that_raise_the_score_are_told_apart() -> None:
    opposed = 0
    for case in cases():
        explainer = Explainer(case.observed, "triple", lambda case=case: a_space(case.observed.graph))  # type: ignore[misc]
        found = explainer.explain_case(case, How(attribution="gradient", check=False))
        for path in found.paths:
            assert path.effect is not None
            assert (path in found.reasons) != path.effect.against
            assert (path in found.opposed) == path.effect.against
        opposed += len(found.opposed)
    assert opposed


def test_a_probability_rises_by_a_hundredth_or_by_a_tenth_of_itself() -> None:
    assert [rises(0.5, after) for after in (0.4, 0.5, 0.509, 0.511)] == [False, False, False, True]
    assert [rises(0.001, after) for after in (0.00105, 0.0012)] == [False, True]


def test_every_subset_is_removed() -> None:
    case = max(cases(), key=lambda case: len(case.best_paths(3).paths))
    paths = case.best_paths(3).paths
    found = remove_subsets(case, paths)
    assert len(found) == 8
    for at, outcome in enumerate(found):
        removed = sorted({triple for i, path in enumerate(paths) if at >> i & 1 for triple in path.triples})
        logits, reached = case.logits_without([np.array(removed, dtype=np.int64)])
        assert outcome.logit == pytest.approx(logits[0], abs=1e-12)
        assert outcome.reached == reached[0]
    assert found[0].logit == pytest.approx(case.importance.logit, abs=1e-10)
