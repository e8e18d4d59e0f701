"""Everything that uses scores uses the blend; where memory is silent, the scores are the paths', bit for bit."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kgcf.evaluation.ranks import rank_answers
from kgcf.explanation.page import render_page
from kgcf.explanation.words import sentences
from kgcf.prediction.blending.reciprocal_ranks import LOSSES, collect_reciprocal_ranks
from kgcf.prediction.blending.reciprocal_ranks import WEIGHTS as WEIGHED
from kgcf.prediction.blending.scorer import MemoryScorer
from kgcf.prediction.calibration.completed_links import uncalibrated
from kgcf.prediction.calibration.sampling import collect_best
from kgcf.prediction.entity_links import missing_links
from kgcf.prediction.observed_graph import ObservedGraph, with_paths
from kgcf.prediction.proposals import collect_proposals
from tests.memory.remembering import LOST, WEIGHTS, Remembering

EVERY = np.arange(6)


def bound(town: Remembering) -> tuple[ObservedGraph, ObservedGraph]:
    """Paths alone, and both, where train is observed."""
    data = town.both.data
    return tuple(run.bind(data.graph, data.entities) for run in (town.paths, town.both))  # type: ignore[return-value]


def wanted(town: Remembering, head: int, relation: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """[N] the blend by its formula, from the paths' logits; and who is reached."""
    paths = bound(town)[0]
    everybody = np.arange(paths.graph.entity_count)[None, :]
    logits, reached = paths.logits(np.array([head]), np.array([relation]), everybody)
    total = logits[0] + LOST * ~reached[0] + WEIGHTS[relation] * town.opinion(head, relation)
    return total, reached[0]


def test_the_memory_of_the_run_was_trained_saved_and_blended(town: Remembering) -> None:
    folder = town.both.folder
    assert folder.sealed("memory.safetensors")
    assert folder.sealed("blend.json")
    assert not folder.file("memory_checkpoint.safetensors").exists()
    assert len(town.memory.known) < len(town.both.data.entities)  # the lone ones were never seen


@pytest.mark.parametrize("relation", [1, 2, 3, 4, 5])
def test_scores_are_those_of_the_formula(town: Remembering, relation: int) -> None:
    heads = town.memory.known[[0, 3, 7]]
    scores = bound(town)[1].scorer.score_tails(heads, np.full(3, relation))
    for row, head in zip(scores, heads.tolist(), strict=True):
        assert np.allclose(row, wanted(town, head, relation)[0], atol=1e-4)
    opinions = town.memory.opinions(heads, np.full(3, relation))
    assert np.array_equal(
        town.memory.opinions(heads[1:2], np.array([relation]))[0], opinions[1]
    )  # whatever else is asked


def test_where_memory_has_nothing_to_say_scores_are_the_paths_bit_for_bit(town: Remembering) -> None:
    paths, both = bound(town)
    lone = np.array([town.both.data.entities.id(f"lone {i}") for i in (1, 2, 3)])
    known = town.memory.known[:3]
    heads = np.concatenate([lone, known])  # unseen entities; and a relation of weight 0
    relations = np.array([2, 1, 4, 0, 0, 0])
    for mine, theirs in zip(
        both.scorer.score_with_reach(heads, relations), paths.scorer.score_with_reach(heads, relations), strict=True
    ):
        assert np.array_equal(mine, theirs)
    mixed = np.array([lone[0], known[0], known[1]])
    some = both.scorer.score_tails(mixed, np.array([2, 2, 0]))  # beside a question that memory answers
    alone = paths.scorer.score_tails(mixed, np.array([2, 2, 0]))
    assert np.array_equal(some[[0, 2]], alone[[0, 2]])
    assert not np.array_equal(some[1], alone[1])


def test_a_candidate_that_memory_never_saw_keeps_its_path_score(town: Remembering) -> None:
    data = town.both.data
    seen = town.both.observe()  # everything is observed, so that paths lead to the lone ones
    plain = town.paths.observe()
    head, friend, lone = data.entities.id("e3"), 2, data.entities.id("lone 1")
    score = seen.scorer.score_tails(np.array([head]), np.array([friend]))[0]
    path, reached = plain.scorer.score_with_reach(np.array([head]), np.array([friend]))
    assert reached[0, lone]
    assert score[lone] == path[0, lone]
    assert score[data.entities.id("e9")] != path[0, data.entities.id("e9")]


def test_another_graph_and_a_graph_of_other_entities_have_no_memory(town: Remembering) -> None:
    data = town.both.data
    triples = [
        (data.entities.label(h), data.relations.label(r), data.entities.label(t)) for h, r, t in data.graph.triples
    ]
    other = [with_paths(run.observe(graph=triples)) for run in (town.paths, town.both)]
    assert other[1].recall is None
    heads, relations = np.repeat(np.arange(5), 6), np.tile(EVERY, 5)
    mine, theirs = (each.scorer.score_tails(heads, relations) for each in other)
    assert np.array_equal(mine, theirs)
    given = [run.evaluate("valid", data=data) for run in (town.paths, town.both)]
    assert given[0].mrr == given[1].mrr
    assert not given[1].parts


def test_evaluation_has_three_rows(town: Remembering) -> None:
    data = town.both.data
    result, alone = town.both.evaluate("valid"), town.paths.evaluate("valid")
    assert list(result.parts) == ["paths alone", "memory alone"]
    assert np.array_equal(result.parts["paths alone"].ranks.realistic, alone.ranks.realistic)
    memory = rank_answers(MemoryScorer(town.memory, len(data.entities)), data.valid)
    assert np.array_equal(result.parts["memory alone"].ranks.realistic, memory.realistic)
    again = rank_answers(bound(town)[1].scorer, data.valid)
    assert np.array_equal(result.ranks.realistic, again.realistic)
    assert result.mrr not in (alone.mrr, result.parts["memory alone"].mrr)
    assert set(result.to_json()["parts"]) == {"paths alone", "memory alone"}
    assert "memory alone" in repr(result)


def test_weights_are_weighed_by_the_ranks_that_evaluation_has(town: Remembering) -> None:
    result = town.both.evaluate("valid")
    found = collect_reciprocal_ranks(bound(town)[0].paths, town.memory, town.both.data.valid, None, 0)
    assert found.paths.mean() == pytest.approx(result.parts["paths alone"].mrr, abs=1e-9)
    assert found.memory.mean() == pytest.approx(result.parts["memory alone"].mrr, abs=1e-9)
    chosen = np.array([WEIGHED.index(weight) for weight in WEIGHTS])[found.relations]
    both = found.both[np.arange(len(found)), LOSSES.index(LOST), chosen]
    assert both.mean() == pytest.approx(result.mrr, abs=1e-9)


def test_predictions_have_the_logits_of_the_blend(town: Remembering) -> None:
    data = town.both.data
    head = int(town.memory.known[5])
    label = data.entities.label(head)
    for answers, relation in (
        (town.both.predict(label, "friend", top=8, observed="train"), 2),
        (town.both.predict(relation="friend", tail=label, top=8, observed="train"), 5),
    ):
        total, reached = wanted(town, head, relation)
        possible = np.ones(len(total), dtype=bool)
        possible[data.graph.tails(head, relation)] = False
        best = np.argsort(-np.where(possible, total, -np.inf), kind="stable")[:8]
        found = [answer.tail if relation == 2 else answer.head for answer in answers]
        assert [answer.logit for answer in answers] == pytest.approx(total[best].tolist(), abs=1e-4)
        assert set(found) == {data.entities.label(int(i)) for i in best}
        assert [answer.reached for answer in answers] == [bool(reached[data.entities.id(name)]) for name in found]


def test_relations_are_predicted_by_the_blend(town: Remembering) -> None:
    data = town.both.data
    head, tail = town.memory.known[[2, 9]].tolist()
    names = data.entities.label(head), data.entities.label(tail)
    answers = town.both.predict(names[0], tail=names[1], observed="train", show_known=True)
    for answer in answers:
        relation = data.relations.id(answer.relation)
        paths = bound(town)[0].logits(np.array([head]), np.array([relation]), np.array([[tail]]))
        lost = 0.0 if paths[1][0, 0] or not WEIGHTS[relation] else LOST
        opinion = WEIGHTS[relation] * town.opinion(head, relation)[tail]
        if not paths[1][0, 0] and not WEIGHTS[relation]:
            assert answer.logit is None
            continue
        assert answer.logit == pytest.approx(float(paths[0][0, 0]) + lost + opinion, abs=1e-4)


def test_score_asks_memory_except_about_what_it_learned_by_heart(town: Remembering) -> None:
    data = town.both.data
    rows = data.graph.triples[data.graph.triples[:, 1] == 2][:2]
    facts = [(data.entities.label(h), "friend", data.entities.label(t)) for h, _, t in rows.tolist()]
    mine, theirs = (run.score(facts, observed="train") for run in (town.paths, town.both))
    assert np.array_equal(mine, theirs)
    head = int(rows[0, 0])
    tail = next(i for i in town.memory.known.tolist() if i not in data.graph.tails(head, 2) and i != head)
    missing = [(facts[0][0], "friend", data.entities.label(tail))]
    score = town.both.score(missing, observed="train")
    assert score == pytest.approx(wanted(town, head, 2)[0][tail], abs=1e-4)
    assert score != pytest.approx(town.paths.score(missing, observed="train"), abs=1e-4)


def test_completion_and_calibration_see_the_blend(town: Remembering) -> None:
    data = town.both.data
    links = town.both.complete("friend", top=12, observed="train")
    for link in links:
        total = wanted(town, data.entities.id(link.head), 2)[0]
        assert link.logit == pytest.approx(total[data.entities.id(link.tail)], abs=1e-4)
    paths, both = bound(town)
    mine, theirs = (collect_best(each, data.valid) for each in (both, paths))
    first = mine.logits[mine.questions == mine.questions[0]]
    assert not np.array_equal(mine.logits, theirs.logits)
    assert (np.diff(first) <= 1e-6).all()  # best first, by the logits that are calibrated
    heard = mine.reached.mean()
    assert heard >= theirs.reached.mean()
    proposals = [collect_proposals(each, data.valid.queries) for each in (both, paths)]
    assert len(proposals[0]) >= len(proposals[1])
    assert not np.array_equal(proposals[0].logits, proposals[1].logits)


def test_an_explanation_says_how_much_is_paths_and_how_much_is_memory(town: Remembering) -> None:
    data = town.both.data
    answer = town.both.predict(data.entities.label(int(town.memory.known[5])), "friend", top=1, observed="train")[0]
    found = town.both.explain(answer.head, "friend", answer.tail, observed="train")
    plain = town.paths.explain(answer.head, "friend", answer.tail, observed="train")
    memory = found.memory
    assert plain.memory is None
    assert memory is not None
    assert memory.asked
    assert memory.path_logit == plain.logit
    assert found.logit == pytest.approx(memory.path_logit + memory.unreached + memory.memory_logit)
    assert found.logit == pytest.approx(answer.logit, abs=1e-4)
    assert found.probability == pytest.approx(answer.probability, abs=1e-5)
    text = "\n".join(sentences(found))
    assert f"paths give {memory.path_logit:+.3f}" in text
    assert f"memory {memory.memory_logit:+.3f}" in text
    h, t = data.entities.id(answer.head), data.entities.id(answer.tail)
    vectors = town.memory.model.entities.double().numpy()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    place = {int(entity): i for i, entity in enumerate(town.memory.known)}
    facts = [(a, b) for a, r, b in data.graph.triples.tolist() if r == 2 and (a, b) != (h, t)]
    near = [float(unit[place[a]] @ unit[place[h]] + unit[place[b]] @ unit[place[t]]) for a, b in facts]
    assert [one.head_similarity + one.tail_similarity for one in memory.alike] == pytest.approx(
        sorted(near, reverse=True)[:3]
    )
    assert memory.alike[0].head.shown in text


def test_paths_are_taken_away_while_memory_says_what_it_says(town: Remembering) -> None:
    entities = town.both.data.entities
    asked = (
        (entities.label(head), "friend", entities.label(tail))
        for head in town.memory.known[:12].tolist()
        for tail in town.memory.known[12:16].tolist()
    )
    for triple in asked:
        found = town.both.explain(*triple, observed="train", attribution="gradient", top=2)
        plain = town.paths.explain(*triple, observed="train", attribution="gradient", top=2)
        if found.paths and found.memory is not None and found.memory.asked:
            break
    memory, carried, alone = found.memory, found.carried, plain.carried
    assert memory is not None
    assert memory.memory_logit != 0
    assert carried is not None
    assert alone is not None
    pairs: list[tuple[Any, Any]] = [
        (carried.alone, alone.alone),
        (carried.without, alone.without),
        (carried.nothing, alone.nothing),
    ]
    pairs += list(zip(found.subsets, plain.subsets, strict=True))
    pairs += list(zip(found.deletion, plain.deletion, strict=True))
    for mine, theirs in pairs:
        lost = 0.0 if mine.reached else LOST
        assert mine.logit == pytest.approx(theirs.logit + lost + memory.memory_logit)
        assert mine.probability == pytest.approx(1 / (1 + np.exp(-mine.logit)))
    for detail in (False, True):
        text = "\n".join(sentences(found, detail))
        assert "Taking paths away is about the paths: memory's part of the score stays what it is" in text
        assert "Taking paths away is about" not in "\n".join(sentences(plain, detail))
    assert "by memory alone" in text
    assert "Taking paths away is about" in render_page(found)
    assert "beside-panel" not in render_page(plain).split("</style>")[1]


def test_the_missing_links_of_an_entity_are_those_of_the_blend(town: Remembering) -> None:
    data = town.both.data
    paths, both = bound(town)
    entity = data.entities.id("e3")
    links = missing_links(both, entity, uncalibrated("seen"), top=20)
    assert links
    for link in links:
        h, r, t = data.entities.id(link.head), data.relations.id(link.relation), data.entities.id(link.tail)
        logit, reached = paths.logits(np.array([h]), np.array([r]), np.array([[t]]))
        if WEIGHTS[r]:
            assert link.logit == pytest.approx(wanted(town, h, r)[0][t], abs=1e-4)
        else:
            assert link.logit == pytest.approx(float(logit[0, 0]), abs=1e-4)
        assert link.reached == bool(reached[0, 0])
    other = missing_links(paths, entity, uncalibrated("seen"), top=20)
    assert {(link.head, link.relation, link.tail) for link in links} != {
        (link.head, link.relation, link.tail) for link in other
    }


def test_another_thread_has_a_scorer_of_its_own_with_the_same_scores(town: Remembering) -> None:
    both = bound(town)[1]
    heads, relations = town.memory.known[:4], np.array([2, 2, 4, 0])
    wanted_scores = both.scorer.score_tails(heads, relations)
    other = both.for_another_thread()
    assert other.scorer is not both.scorer
    assert other.paths is not both.paths
    assert np.array_equal(other.scorer.score_tails(heads, relations), wanted_scores)


def test_an_explanation_says_why_memory_is_silent(town: Remembering) -> None:
    data = town.both.data
    h, r, t = data.graph.triples[data.graph.triples[:, 1] == 2][0].tolist()
    names = data.entities.label(h), data.relations.label(r), data.entities.label(t)
    known = town.both.explain(*names, observed="train")
    assert known.memory is not None
    assert "trained on this very fact" in known.memory.silence
    assert known.logit == town.paths.explain(*names, observed="train").logit
    unseen = town.both.explain("lone 1", "friend", names[0], observed="train")
    assert unseen.memory is not None
    assert "never saw" in unseen.memory.silence
    mute = town.both.explain(names[0], "parent", names[2], observed="train")
    assert mute.memory is not None
    assert mute.memory.memory_logit == 0
