"""Several answers of one question in a pass: who meets, what is hidden, and that training scores as ranking does."""

import numpy as np
import pytest
import torch

from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove, hide_triples
from kgcf.data.negatives import draw_reached
from kgcf.model.dense_scores import score_densely
from kgcf.model.kgcf import Evidence
from kgcf.propagation.dense.propagation import DenseEdges, propagate_densely
from kgcf.propagation.plan.planner import Planner
from kgcf.training.batches import Batch, Rules, make_batch, stream
from kgcf.training.objective import query_losses
from kgcf.training.passes import Passes
from kgcf.training.step import GradientComputer
from kgcf.training.substitutes import Substitutes, pick_pairs
from tests.oracles import random_graph
from tests.training.tiny import everything, family, model, step_context


def dense(seed: int) -> KnowledgeGraph:
    """Few entities, many triples: most questions have several answers."""
    generator = np.random.default_rng(seed)
    triples = np.unique(generator.integers(0, [9, 2, 9], (70, 3)), axis=0)
    return KnowledgeGraph.build(triples, 12, 2)


def grouped(graph: KnowledgeGraph, remove: Remove, answers: int = 3, negatives: int = 4, seed: int = 0) -> Batch:
    passes = Passes(graph, answers)
    asked = passes.epoch(seed, 0).take(np.arange(len(passes)))
    return make_batch(graph, asked, Rules(negatives, remove), stream(seed, 0, 0, 0))


@pytest.mark.parametrize("answers", [2, 3, 8])
def test_an_epoch_asks_every_triple_from_both_ends_in_as_few_passes_as_possible(answers: int) -> None:
    graph = dense(0)
    passes = Passes(graph, answers)
    meetings: list[list[tuple[int, ...]]] = []
    for epoch in range(3):
        asked = passes.epoch(5, epoch).take(np.arange(len(passes)))
        seen: dict[tuple[int, int], list[list[int]]] = {}
        for row, turned in enumerate(asked.turned.tolist()):
            h, r, t = graph.triples[asked.triples[row, asked.answered[row]]].T.tolist()
            heads, tails = (t, h) if turned else (h, t)
            assert len(set(heads)) == len(set(r)) == 1, "a pass asks one question"
            assert len(heads) <= answers
            seen.setdefault((heads[0], r[0] + 2 * turned), []).append(sorted(tails))
        for question, parts in seen.items():
            known = graph.tails(*question).tolist()
            assert sorted(tail for part in parts for tail in part) == known
            assert len(parts) == -(-len(known) // answers)
        assert sum(map(len, seen.values())) == len(passes)
        meetings.append([tuple(part) for parts in seen.values() for part in parts])
        again = passes.epoch(5, epoch).take(np.arange(len(passes)))
        assert (again.triples == asked.triples).all()
    if answers < 8:
        assert {*meetings[0]} != {*meetings[1]}, "other answers meet in another epoch"


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_a_pass_hides_no_more_than_its_share_of_the_answers(share: float) -> None:
    star = [[0, 0, tail] for tail in range(1, 12)]
    graph = KnowledgeGraph.build([*dense(0).triples.tolist(), *star], 12, 2)
    passes = Passes(graph, 8, share)
    asked = passes.epoch(0, 0).take(np.arange(len(passes)))
    for row, turned in enumerate(asked.turned.tolist()):
        h, r, t = graph.triples[asked.triples[row, 0]].tolist()
        known = len(graph.tails(t, r + 2) if turned else graph.tails(h, r))
        assert asked.counts[row] <= max(1, known * share)
    assert asked.counts.max() > 1
    assert asked.counts.sum() == 2 * len(graph)


def test_single_answers_are_asked_from_one_end() -> None:
    graph = dense(1)
    asked = Passes(graph, 1).epoch(0, 0).take(np.arange(10))
    assert asked.turned.tolist() == [False] * 5 + [True] * 5
    assert asked.triples.shape == (10, 1)
    assert len(Passes(graph, 1)) == len(graph)


@pytest.mark.parametrize("remove", ["triple", "pair"])
def test_answers_are_hidden_together_and_known_ones_are_no_negatives(remove: Remove) -> None:
    graph = dense(2)
    batch = grouped(graph, remove)
    visible = 0
    for b in range(len(batch)):
        h, r = int(batch.heads[b]), int(batch.relations[b])
        known = set(graph.tails(h, r).tolist())
        answers = set(batch.candidates[b, :3][batch.asked.answered[b]].tolist())
        assert answers <= known
        assert not known & set(batch.candidates[b, 3:].tolist())
        away = graph.triples[batch.hidden.of(b)].tolist()
        assert len(away) == len(set(map(tuple, away)))
        seen = everything(batch.hidden, b, graph)
        assert not answers & set(seen.tails(h, r).tolist())
        assert set(seen.tails(h, r).tolist()) == known - answers, "the other true answers stay visible"
        visible += len(known - answers)
        if remove == "pair":
            assert not set(batch.candidates[b].tolist()) & set(seen.edge_tails[seen.offsets[h] : seen.offsets[h + 1]])
        else:
            assert len(away) == len(answers)
    assert visible > 5


@pytest.mark.parametrize("remove", ["triple", "pair"])
@pytest.mark.parametrize("context", ["decoder", "unreached"])
def test_training_scores_are_ranking_scores_without_the_joint_hidden_set(remove: Remove, context: str) -> None:
    """Treatment and context on: a logit is that of dense propagation on the graph rebuilt without what is hidden."""
    graph = family(np.random.default_rng(3))
    net = model(3, treatment=True, context=context)
    batch = grouped(graph, remove)
    heard: list[torch.Tensor] = []
    original = net.decode

    def decode(evidence: Evidence, treated: torch.Tensor | None) -> torch.Tensor:
        heard.append(original(evidence, treated))
        return heard[-1]

    net.decode = decode  # type: ignore[method-assign]
    treatment = assign_treatment(graph, TreatmentSettings())
    GradientComputer(step_context(net, graph, treatment, remove=remove), 1).compute(batch)
    logits = torch.cat(heard)
    assert int((batch.asked.counts > 1).sum()) > 5
    for b in range(len(batch)):
        seen, asked = everything(batch.hidden, b, graph), (batch.heads[b : b + 1], batch.relations[b : b + 1])
        edges = DenseEdges.build(seen, net.encoder.query.weight)
        states = propagate_densely(net.encoder, edges, torch.from_numpy(asked[0]), torch.from_numpy(asked[1]))
        treated = assign_treatment(seen, TreatmentSettings()).treated(*asked)
        wanted = score_densely(net.decoder, states, torch.from_numpy(treated))[0, torch.from_numpy(batch.candidates[b])]
        assert float((wanted - logits[b]).abs().max().detach()) < 1e-10


def test_every_answer_has_its_own_counterfactual_treatment() -> None:
    """Of two answers in a pass one may be turned and the other not; each has the loss of a pass with it alone."""
    graph = dense(4)
    net, count = model(2, treatment=True), len(graph)
    treatment = assign_treatment(graph, TreatmentSettings())
    matched = np.arange(count) % 2 == 0
    alike = np.arange(count) % 3 == 0
    nowhere = np.zeros(count, np.int64)
    found = Substitutes(graph, nowhere, nowhere, matched, alike, ~alike)
    batch = grouped(graph, "triple")
    context = step_context(net, graph, treatment, found, alpha=1.0)
    sums, _ = GradientComputer(context, 2).compute(batch)
    evidence = net.encode(Planner(graph, 2).plan(batch.heads, batch.relations, batch.candidates, batch.hidden))
    treated = treatment.treated(batch.heads, batch.relations, batch.candidates, batch.hidden)
    total, mixed = 0.0, 0
    for b in range(len(batch)):
        kinds = set()
        for a in range(int(batch.asked.counts[b])):
            triple = int(batch.asked.triples[b, a])
            flip = bool(matched[triple]) and bool(treated[b, a] != alike[triple])
            logits = net.decode(evidence, torch.from_numpy(treated ^ flip))[b, [a, 3, 4, 5, 6]].unsqueeze(0)
            target = torch.full((1, 1), float(not alike[triple] if flip else 1.0), dtype=torch.double)
            total += float(query_losses(logits, target, 1.0).sum().detach())
            kinds.add(flip)
        mixed += len(kinds) == 2
    assert mixed > 2
    assert sums.terms["counterfactual"] == pytest.approx(total, rel=1e-10)
    assert sums.queries == int(batch.asked.counts.sum())


def test_substitutes_of_every_answer_are_compared() -> None:
    graph = dense(5)
    ends = np.roll(graph.triples, 3, axis=0).astype(np.int64)
    every = np.ones(len(graph), np.bool_)
    batch = grouped(graph, "triple")
    pairs = pick_pairs(batch, Substitutes(graph, ends[:, 0], ends[:, 2], every, every, every), "all", "triple")
    assert pairs is not None
    assert len(pairs) == 2 * int(batch.asked.counts.sum())


def test_negatives_among_the_reached_are_uniform_and_strict() -> None:
    graph = random_graph(np.random.default_rng(8))
    head, relation = (int(value) for value in graph.triples[0, :2])
    answer = int(graph.triples[0, 2])
    hidden = hide_triples(graph, [head], [relation], [answer])
    seen = everything(hidden, 0, graph)
    reached = {head}
    for _ in range(2):
        reached |= {int(t) for e in reached for t in seen.edge_tails[seen.offsets[e] : seen.offsets[e + 1]]}
    wanted = sorted(reached - set(graph.tails(head, relation).tolist()))
    assert 2 < len(wanted) < graph.entity_count - len(graph.tails(head, relation))
    draws = 4000
    drawn = draw_reached(graph, np.array([head]), np.array([relation]), draws, 2, hidden, stream(0, 1))
    counts = np.bincount(drawn[0], minlength=graph.entity_count)
    assert sorted(np.flatnonzero(counts)) == wanted, "never a known answer, never outside the reach"
    expected = draws / len(wanted)
    chi_square = float(((counts[wanted] - expected) ** 2 / expected).sum())
    assert chi_square < len(wanted) + 4 * np.sqrt(2 * len(wanted))


def test_the_switch_draws_negatives_among_the_reached() -> None:
    """Two separate worlds: negatives stay in the head's own; the head of the unreached sees the other one too."""
    ring = [[i, 0, (i + 1) % 6] for i in range(6)]
    graph = KnowledgeGraph.build([*ring, *([a + 6, r, b + 6] for a, r, b in ring)], 12, 1)
    for context, strays in (("none", False), ("unreached", True)):
        rules = step_context(model(1, context=context), graph, negatives=8, negatives_from="reached").rules
        assert rules.within == 2
        asked = Passes(graph, 1).epoch(0, 0).take(np.arange(12))
        batch = make_batch(graph, asked, rules, stream(0, 0, 0, 0))
        apart = (batch.candidates[:, 1:] < 6) != (batch.heads < 6)[:, None]
        assert not apart[:, :6].any()
        assert bool(apart.any()) == strays
    assert step_context(model(1), graph).rules == Rules(5, "triple")


def test_a_head_that_reaches_nothing_new_draws_among_all() -> None:
    graph = KnowledgeGraph.build([[0, 0, 0], [1, 0, 2]], 4, 1)
    asked = Passes(graph, 1).epoch(0, 0).take(np.arange(2))
    batch = make_batch(graph, asked, Rules(6, "triple", within=3), stream(0, 0, 0, 0))
    assert len(batch) == 2
    for b in range(2):
        assert not set(graph.tails(int(batch.heads[b]), int(batch.relations[b]))) & set(
            batch.candidates[b, 1:].tolist()
        )
