"""Gradients of a batch: independent of threads and memory, equal to the dense model, blind to what is hidden."""

import numpy as np
import pytest
import torch

from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove, hide_by_rule
from kgcf.model.dense_scores import score_densely
from kgcf.model.kgcf import KGCF
from kgcf.propagation.dense.propagation import DenseEdges, propagate_densely
from kgcf.propagation.plan.planner import Planner
from kgcf.training.batches import Batch, stream, triples_batch
from kgcf.training.loop import Trainer
from kgcf.training.objective import query_losses
from kgcf.training.passes import ask_both_ways
from kgcf.training.settings import TrainingSettings
from kgcf.training.step import GradientComputer, Sums
from kgcf.training.substitutes import Substitutes, pick_pairs
from tests.training.tiny import everything, family, model, step_context

CONTEXTS = ("none", "unreached", "decoder", "layers")


def make(graph: KnowledgeGraph, size: int = 12, remove: Remove = "triple") -> Batch:
    return triples_batch(graph, np.arange(5, 5 + size), 5, remove, stream(3, 0, 0))


def dense_logits(net: KGCF, graph: KnowledgeGraph, batch: Batch) -> torch.Tensor:
    edges = DenseEdges.build(graph, net.encoder.query.weight)
    heads, relations = torch.from_numpy(batch.heads), torch.from_numpy(batch.relations)
    result = propagate_densely(net.encoder, edges, heads, relations, batch.hidden)
    return score_densely(net.decoder, result).gather(1, torch.from_numpy(batch.candidates))


@pytest.mark.parametrize("context", ["none", "decoder", "layers"])
def test_without_treatment_it_is_nbfnet(context: str) -> None:
    graph = family(np.random.default_rng(0))
    net, batch = model(3, context=context), make(graph)
    sums, _ = GradientComputer(step_context(net, graph), 1).compute(batch)
    loss = query_losses(dense_logits(net, graph, batch), torch.ones(len(batch), 1), 1.0).sum()
    expected = torch.autograd.grad(loss, list(net.parameters()), allow_unused=True)
    assert sums.terms["factual"] == pytest.approx(float(loss.detach()), rel=1e-10)
    for (name, parameter), found, wanted in zip(net.named_parameters(), sums.gradients, expected, strict=True):
        reference = torch.zeros_like(parameter) if wanted is None else wanted
        assert torch.allclose(found, reference, atol=1e-10), name


def dense_background(net: KGCF, graph: KnowledgeGraph, batch: Batch) -> torch.Tensor:
    """[B, K] logits by the head of the unreached, from histograms counted edge by edge; q is not differentiated."""
    rows = []
    for b in range(len(batch)):
        counts = torch.zeros(graph.entity_count, 6, dtype=torch.double)
        for h, r, t in everything(batch.hidden, b, graph).triples.tolist():
            counts[h, r] += 1
            counts[t, r + 3] += 1
        k = counts / counts.sum(dim=1, keepdim=True).clamp(min=1)
        q = net.encoder.query.weight[batch.relations[b]].detach()
        projected = net.decoder.project_context(k[torch.from_numpy(batch.candidates[b])])
        rows.append(net.decoder.background(q, None, projected))
    return torch.stack(rows)


@pytest.mark.parametrize("skip", [True, False])
def test_reached_and_unreached_learn_apart(skip: bool) -> None:
    """Paths learn from reached negatives, the head of the unreached from every answer and every negative."""
    graph = family(np.random.default_rng(7))
    net, batch = model(3, context="unreached"), make(graph, 90)
    sums, _ = GradientComputer(step_context(net, graph, skip_unreached=skip), 2).compute(batch)
    plan = Planner(graph, 2).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    reached = net.encode(plan).reached
    assert 0 < int(reached[:, 1:].sum()) < reached[:, 1:].numel(), "the batch must have both kinds of negatives"
    assert bool((~reached[:, 0]).any()), "and an unreached answer"
    losses = []
    for logits, seen in zip(dense_logits(net, graph, batch), reached, strict=True):
        chosen = torch.cat([logits[:1], logits[1:][seen[1:]]]).unsqueeze(0)
        if seen[0] or not skip:
            losses.append(query_losses(chosen, torch.ones(1, 1), 1.0)[0, 0])
    factual = torch.stack(losses).sum()
    context = query_losses(dense_background(net, graph, batch), torch.ones(len(batch), 1), 1.0).sum()
    assert sums.terms["factual"] == pytest.approx(float(factual.detach()), rel=1e-10)
    assert sums.terms["context"] == pytest.approx(float(context.detach()), rel=1e-10)
    expected = torch.autograd.grad(factual + context, list(net.parameters()), allow_unused=True)
    for (name, parameter), found, wanted in zip(net.named_parameters(), sums.gradients, expected, strict=True):
        reference = torch.zeros_like(parameter) if wanted is None else wanted
        assert torch.allclose(found, reference, atol=1e-10), name


@pytest.mark.parametrize("threads", [1, 3])
def test_every_term_is_a_mean_over_the_queries_that_it_runs_over(threads: int) -> None:
    """Some answers are unreached: paths learn from the others, the head of the unreached from all."""
    graph = family(np.random.default_rng(7))
    net, found = model(3, treatment=True, context="unreached"), substitutes(graph)
    treatment = assign_treatment(graph, TreatmentSettings())
    context = step_context(net, graph, treatment, found, skip_unreached=True, alpha=0.5)
    settings = TrainingSettings(batch_size=90, seed=3, learning_rate=1e-12)
    trainer = Trainer(context, settings, None)
    trainer._step(GradientComputer(context, threads), [ask_both_ways(np.arange(5, 95))])
    batch = triples_batch(graph, np.arange(5, 95), 5, "triple", stream(3, 0, 0, 0))
    plan = Planner(graph, 2).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    evidence = net.encode(plan)
    treated = treatment.treated(batch.heads, batch.relations, batch.candidates, batch.hidden)
    flips = found.matched[batch.asked.triples[:, 0]][:, None]
    terms: dict[str, list[torch.Tensor]] = {"factual": [], "counterfactual": [], "context": []}
    arms = (
        ("factual", treated, np.ones(len(batch))),
        ("counterfactual", treated ^ flips, found.outcomes[batch.asked.triples[:, 0]]),
    )
    for name, flags, targets in arms:
        logits = net.decode(evidence, torch.from_numpy(flags))
        for b in np.flatnonzero(evidence.reached[:, 0].numpy()).tolist():
            seen = torch.cat([logits[b, :1], logits[b, 1:][evidence.reached[b, 1:]]]).unsqueeze(0)
            terms[name].append(query_losses(seen, torch.from_numpy(targets[b : b + 1, None]), 1.0)[0, 0])
    background = net.decode_unreached(evidence, torch.from_numpy(treated))
    terms["context"] = list(query_losses(background, torch.ones(len(batch), 1), 1.0)[:, 0])
    means = {name: torch.stack(values).mean() for name, values in terms.items()}
    assert len(terms["factual"]) == len(terms["counterfactual"]) < len(terms["context"]) == len(batch)
    loss = means["factual"] + 0.5 * means["counterfactual"] + means["context"]
    expected = torch.autograd.grad(loss, list(net.parameters()), allow_unused=True)
    for (name, parameter), wanted in zip(net.named_parameters(), expected, strict=True):
        assert parameter.grad is not None
        reference = torch.zeros_like(parameter) if wanted is None else wanted
        assert torch.allclose(parameter.grad, reference, atol=1e-9), name
    shown = trainer._means()
    assert {name: shown[name] for name in means} == pytest.approx({n: float(v.detach()) for n, v in means.items()})


def test_the_head_of_the_unreached_learns_where_no_answer_is_reached() -> None:
    """Every answer of the batch is unreached: paths have nothing to learn from, and do not move."""
    graph = KnowledgeGraph.build([[0, 0, 1], [2, 0, 3], [4, 0, 5]], 6, 1)
    for context, moved in (("unreached", True), ("none", False)):
        net = model(1, context=context)
        settled = step_context(net, graph, skip_unreached=True)
        before = [parameter.detach().clone() for parameter in net.parameters()]
        trainer = Trainer(settled, TrainingSettings(batch_size=3), None)
        trainer._step(GradientComputer(settled, 1), [ask_both_ways(np.arange(3))])
        same = [torch.equal(one, two) for one, two in zip(before, net.parameters(), strict=True)]
        head = {id(p) for p in net.decoder.unreached.parameters()} if net.decoder.unreached is not None else set()
        paths = [equal for equal, p in zip(same, net.parameters(), strict=True) if id(p) not in head]
        assert all(paths)
        assert all(same) != moved


def test_threads_and_memory_change_nothing_but_rounding() -> None:
    graph = family(np.random.default_rng(1))
    net, batch = model(3, context="unreached"), make(graph, 14)
    whole = GradientComputer(step_context(net, graph), 1).compute(batch)[0]
    for threads, memory in ((2, 1e9), (3, 1e9), (1, 1.0), (2, 2000.0)):
        context = step_context(net, graph)
        context = type(context)(**{**vars(context), "memory": memory})
        parts = GradientComputer(context, threads).compute(batch)[0]
        assert parts.queries == whole.queries
        for found, wanted in zip(parts.gradients, whole.gradients, strict=True):
            assert torch.allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("remove", ["triple", "pair"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_training_scores_are_ranking_scores_without_the_hidden_set(remove: str, context: str) -> None:
    """The oracle of the hidden set, with treatment and context on: nothing betrays the triple that is asked for."""
    graph = family(np.random.default_rng(2), people=25)
    batch = make(graph, 8, "pair" if remove == "pair" else "triple")
    net = model(3, treatment=True, context=context)
    treatment = assign_treatment(graph, TreatmentSettings())
    plan = Planner(graph, 2).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    treated = torch.from_numpy(treatment.treated(batch.heads, batch.relations, batch.candidates, batch.hidden))
    logits = net.decode(net.encode(plan), treated)
    for b in range(len(batch)):
        rebuilt = everything(batch.hidden, b, graph)
        row = slice(b, b + 1)
        seen = Planner(rebuilt, 2).plan(batch.heads[row], batch.relations[row], batch.candidates[row])
        fresh = assign_treatment(rebuilt, TreatmentSettings())
        flags = torch.from_numpy(fresh.treated(batch.heads[row], batch.relations[row], batch.candidates[row]))
        assert torch.allclose(logits[b], net.decode(net.encode(seen), flags)[0], atol=1e-10)


def substitutes(graph: KnowledgeGraph) -> Substitutes:
    """Any pairs will do here: every triple is matched with the ends of the next one."""
    turned = np.roll(graph.triples, 1, axis=0).astype(np.int64)
    matched, outcomes = np.arange(len(graph)) % 5 > 0, np.arange(len(graph)) % 2 == 0
    factual = assign_treatment(graph, TreatmentSettings()).treated_triples(graph.triples, leave_one_out=True)
    return Substitutes(graph, turned[:, 0], turned[:, 2], matched, factual ^ matched, outcomes | ~matched)


def total(net: KGCF, graph: KnowledgeGraph, batch: Batch, **objective: object) -> tuple[Sums, Sums]:
    treatment = assign_treatment(graph, TreatmentSettings())
    context = step_context(net, graph, treatment, substitutes(graph), **objective)  # type: ignore[arg-type]
    return GradientComputer(context, 2).compute(batch)


@pytest.mark.parametrize("target", ["printed", "outcome"])
def test_the_counterfactual_loss_flips_the_treatment_of_matched_queries(target: str) -> None:
    graph = family(np.random.default_rng(4))
    net, batch = model(3, treatment=True), make(graph)
    sums, _ = total(net, graph, batch, alpha=0.5, cf_target=target)
    found, treatment = substitutes(graph), assign_treatment(graph, TreatmentSettings())
    evidence = net.encode(Planner(graph, 2).plan(batch.heads, batch.relations, batch.candidates, batch.hidden))
    treated = treatment.treated(batch.heads, batch.relations, batch.candidates, batch.hidden)
    flipped = np.where(found.matched[batch.asked.triples[:, 0]][:, None], ~treated, treated)
    targets = found.outcomes[batch.asked.triples[:, 0]] if target == "outcome" else np.ones(len(batch))
    factual = query_losses(net.decode(evidence, torch.from_numpy(treated)), torch.ones(len(batch), 1), 1.0).sum()
    other = query_losses(net.decode(evidence, torch.from_numpy(flipped)), torch.from_numpy(targets[:, None]), 1.0).sum()
    assert sums.terms["factual"] == pytest.approx(float(factual.detach()))
    assert sums.terms["counterfactual"] == pytest.approx(float(other.detach()))
    expected = torch.autograd.grad(factual + 0.5 * other, list(net.parameters()), allow_unused=True)
    for gradient, wanted in zip(sums.gradients, expected, strict=True):
        assert wanted is None or torch.allclose(gradient, wanted, atol=1e-10)


def test_the_discrepancy_compares_positives_with_their_substitutes() -> None:
    graph = family(np.random.default_rng(5))
    net, batch = model(3, treatment=True), make(graph)
    _, apart = total(net, graph, batch, beta=1.0, disc="frobenius", disc_pairs=4)
    found = substitutes(graph)
    rows = np.flatnonzero(found.matched[batch.asked.triples[:, 0]])[:4]
    states = []
    for b in rows.tolist():
        e, turned = int(batch.asked.triples[:, 0][b]), bool(batch.asked.turned[b])
        a, other = int(found.heads[e]), int(found.tails[e])
        pair = (other, int(batch.relations[b]), a) if turned else (a, int(batch.relations[b]), other)
        for head, relation, answer in (
            (int(batch.heads[b]), int(batch.relations[b]), int(batch.candidates[b, 0])),
            pair,
        ):
            plain = (head, relation, answer) if relation < 3 else (answer, relation - 3, head)
            seen = graph.without([plain])
            plan = Planner(seen, 2).plan([head], [relation], [[answer]])
            states.append(net.encode(plan).states[0, 0])
    factual, counterfactual = torch.stack(states[::2]), torch.stack(states[1::2])
    expected = torch.linalg.vector_norm(factual - counterfactual) / 2
    assert apart.terms["discrepancy"] == pytest.approx(float(expected.detach()))
    assert apart.queries == 1
    assert pick_pairs(batch, None, 4, "triple") is None


@pytest.mark.parametrize("remove", ["triple", "pair"])
def test_positives_and_substitutes_hide_what_the_rule_says(remove: Remove) -> None:
    graph = family(np.random.default_rng(5), people=12)
    pairs = pick_pairs(make(graph, remove=remove), substitutes(graph), "all", remove)
    assert pairs is not None
    rule = hide_by_rule(graph, pairs.heads, pairs.relations, pairs.candidates, remove)
    assert pairs.hidden.offsets.tolist() == rule.offsets.tolist()
    assert pairs.hidden.triples.tolist() == rule.triples.tolist()
    assert (np.diff(rule.offsets) > 1).any() == (remove == "pair")


def test_unreached_answers_are_left_out_and_counted() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 2], [0, 0, 2], [3, 0, 4]], 6, 1)
    batch = triples_batch(graph, np.arange(4), 3, "triple", stream(0, 0, 0))
    net = model(1)
    skipped, _ = GradientComputer(step_context(net, graph, skip_unreached=True), 1).compute(batch)
    kept, _ = GradientComputer(step_context(net, graph), 1).compute(batch)
    assert (skipped.queries, skipped.unreached) == (3, 1)
    assert (kept.queries, kept.unreached) == (4, 0)


def test_flipping_the_treatment_changes_the_decoder_only() -> None:
    graph = family(np.random.default_rng(6))
    net, batch = model(3, treatment=True), make(graph)
    evidence = net.encode(Planner(graph, 2).plan(batch.heads, batch.relations, batch.candidates, batch.hidden))
    flags = torch.zeros(batch.candidates.shape, dtype=torch.bool)
    first, second = net.decode(evidence, flags), net.decode(evidence, ~flags)
    assert not torch.allclose(first, second)
    assert torch.equal(net.decode(evidence, flags), first)
