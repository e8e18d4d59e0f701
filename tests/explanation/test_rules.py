"""Rules: patterns applied to a graph against plain recursion, and gathered from explanations."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError
from kgcf.explanation.explainer import find_paths
from kgcf.explanation.how import How
from kgcf.explanation.patterns import Pattern, count_pairs, pattern_of
from kgcf.explanation.rules import Rule, RuleStep, draw_answers, find_rules
from tests.propagation.random_graphs import random_graph

from .test_explainer import people


def pairs_by_hand(graph: KnowledgeGraph, pattern: Pattern) -> set[tuple[int, int]]:
    """Every (x, z) that a path of the pattern links, by recursion."""
    found = set()

    def go_on(path: tuple[int, ...]) -> None:
        if len(path) == len(pattern) + 1:
            found.add((path[0], path[-1]))
            return
        relation, at = pattern[len(path) - 1], path[-1]
        for h, r, t in graph.triples.tolist():
            step = t if (h, r) == (at, relation) else h if (t, r + graph.relation_count) == (at, relation) else None
            for target in {step} if h != t else {step, h if at == h and relation % graph.relation_count == r else None}:
                if target is not None and target not in path:
                    go_on((*path, target))

    for x in range(graph.entity_count):
        go_on((x,))
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_pairs_of_a_pattern_equal_plain_recursion(seed: int) -> None:
    graph = random_graph(seed, entity_count=9, triple_count=30)
    generator = np.random.default_rng(seed)
    known = {(h, r, t) for h, r, t in graph.triples.tolist()}
    linked = 0
    for length in (1, 2, 3, 4):
        for _ in range(6):
            pattern = tuple(generator.integers(2 * graph.relation_count, size=length).tolist())
            relation = int(generator.integers(graph.relation_count))
            expected = pairs_by_hand(graph, pattern)
            found = count_pairs(graph, pattern, relation, generator)
            true = sum((x, relation, z) in known for x, z in expected)
            assert (found.pairs, found.true, found.exact) == (len(expected), true, True)
            assert found.confidence == (true / len(expected) if expected else 0.0)
            linked += true
    assert linked > 5


def test_a_pattern_with_too_many_paths_is_counted_over_a_part_of_the_heads() -> None:
    graph = random_graph(0, entity_count=9, triple_count=30)
    whole = count_pairs(graph, (0, 1), 0, np.random.default_rng(0))
    part = count_pairs(graph, (0, 1), 0, np.random.default_rng(0), limit=2)
    assert whole.exact
    assert not part.exact
    assert 0 <= part.pairs < whole.pairs


def test_rules_are_the_patterns_that_carry_answers() -> None:
    explainer = people()
    graph = explainer.observed.graph
    how = How(top=2, attribution="gradient", check=False)
    answers = graph.triples[:8]
    rules = find_rules(explainer, answers, 100, how=how)
    expected = Counter[tuple[int, Pattern]]()
    drops: dict[tuple[int, Pattern], list[float]] = {}
    for h, r, t in answers.tolist():
        chosen = find_paths(explainer.case(h, r, t, how), how)
        best: dict[Pattern, float] = {}
        for path, effect in zip(chosen.paths, chosen.effects, strict=True):
            if not effect.against:
                best[pattern_of(path)] = max(effect.drop, best.get(pattern_of(path), -np.inf))
        for pattern, drop in best.items():
            expected[r, pattern] += 1
            drops.setdefault((r, pattern), []).append(drop)
    assert len(rules) == len(expected) > 3
    found = {}
    for rule in rules:
        steps = tuple(["knows", "likes"].index(s.relation.label) + 2 * s.inverse for s in rule.steps)
        found[["knows", "likes"].index(rule.relation.label), steps] = rule
    assert {key: rule.answers for key, rule in found.items()} == expected
    for key, rule in found.items():
        assert rule.mean_drop == pytest.approx(np.mean(drops[key]))
        assert rule.explained == int((answers[:, 1] == key[0]).sum())
        applied = count_pairs(graph, key[1], key[0], np.random.default_rng(0))
        assert (rule.pairs, rule.true, rule.confidence) == (applied.pairs, applied.true, applied.confidence)
        assert [len(path.edges) for path in rule.examples] == [len(key[1])] * min(rule.answers, 3)
    assert [rule.answers for rule in rules] == sorted((rule.answers for rule in rules), reverse=True)
    assert find_rules(explainer, answers, 2, how=how) == rules[:2]


def test_a_rule_in_words() -> None:
    names = Vocabulary(["parent", "brother", "uncle"])
    parent, brother, uncle = (names.named(i) for i in range(3))
    steps = (RuleStep(parent, False), RuleStep(brother, True))
    rule = Rule(uncle, steps, 3, 4, 1.5, 20, 15, 0.75, True, ())
    assert str(rule) == "X —parent→ Y and Z —brother→ Y ⇒ X —uncle→ Z"
    long = replace(rule, steps=(*steps, RuleStep(parent, False)))
    assert long.text == "X —parent→ A and B —brother→ A and B —parent→ Z ⇒ X —uncle→ Z"
    assert rule.to_json()["rule"] == rule.text
    assert rule.to_json()["confidence"] == 0.75


def test_answers_are_drawn_of_one_relation_or_of_all() -> None:
    answers = np.array([[0, 0, 1], [1, 1, 2], [2, 0, 3]], dtype=np.int32)
    names = Vocabulary(["knows", "likes", "fears"])
    assert len(draw_answers(answers, names, None, 2, 0)) == 2
    assert {*map(tuple, draw_answers(answers, names, "knows", 9, 0).tolist())} == {(0, 0, 1), (2, 0, 3)}
    with pytest.raises(DataError, match="Validation has no answer of 'fears'"):
        draw_answers(answers, names, "fears", 9, 0)
    with pytest.raises(DataError, match="Validation has no answer, so .* rules in. Train on data with a larger"):
        draw_answers(answers[:0], names, None, 9, 0)
