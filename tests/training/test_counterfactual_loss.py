"""Variants of the counterfactual loss: weights by distance, and substitutes as questions of their own."""

import math

import numpy as np
import pytest
import torch

from kgcf.causal.counterfactual import CounterfactualTable
from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.config import configure
from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import SettingsError
from kgcf.model.kgcf import KGCF
from kgcf.propagation.plan.planner import Planner
from kgcf.runs.stages import as_substitutes
from kgcf.training.batches import Batch, Rules, stream, triples_batch
from kgcf.training.objective import Weighting, query_losses
from kgcf.training.step import GradientComputer, StepContext, Sums
from kgcf.training.substitutes import Substitutes, ask_substitutes
from tests.training.tiny import everything, family, model, step_context

GRAPH = family(np.random.default_rng(4))
TREATMENT = assign_treatment(GRAPH, TreatmentSettings())


def substitutes(graph: KnowledgeGraph = GRAPH) -> Substitutes:
    """Every triple is matched with the ends of another one, or with ends that its relation does not link."""
    count = len(graph)
    ends = np.roll(graph.triples, 41, axis=0).astype(np.int64)
    ends[::3] = np.roll(graph.triples, 1, axis=0)[::3]  # mostly a known triple, which must be hidden
    matched = np.arange(count) % 5 > 0
    triples = np.stack([ends[:, 0], graph.triples[:, 1], ends[:, 2]], axis=1)
    treated = TREATMENT.treated_triples(graph.triples, leave_one_out=True) ^ matched
    distances = np.where(matched, np.arange(count) % 11 / 4, np.inf)
    return Substitutes(graph, ends[:, 0], ends[:, 2], matched, treated, graph.contains(triples), distances)


def make(size: int = 18) -> Batch:
    return triples_batch(GRAPH, np.arange(5, 5 + size), 5, "triple", stream(3, 0, 0))


def context(net: KGCF, **objective: object) -> StepContext:
    return step_context(net, GRAPH, TREATMENT, substitutes(), **{"alpha": 0.5, **objective})  # type: ignore[arg-type]


def test_weights_follow_their_formula() -> None:
    known = np.zeros(5, np.int64), np.zeros(5, np.int64), np.array([True, True, False, True, True])
    found = Substitutes(GRAPH, *known, known[2], known[2], np.array([1.0, 2.0, np.inf, 4.0, 0.5]))
    assert found.weights("equal") is None
    by_distance = found.weights("distance")  # the median is 1.5
    assert by_distance is not None
    raw = [math.exp(-d / 1.5) for d in (1.0, 2.0, 4.0, 0.5)]
    assert by_distance[known[2]].tolist() == pytest.approx([value / (sum(raw) / 4) for value in raw])
    assert by_distance[2] == 0
    nearest = found.weights(0.5)
    assert nearest is not None
    assert nearest.tolist() == pytest.approx([2.0, 0.0, 0.0, 0.0, 2.0])
    alone = Substitutes(GRAPH, *known[:2], ~known[2] & False, known[2], known[2], np.full(5, np.inf)).weights(0.5)
    assert alone is not None
    assert not alone.any()


def test_equal_vectors_do_not_divide_by_zero() -> None:
    matched, distances = np.ones(4, np.bool_), np.array([0.0, 0.0, 0.0, 1.0])
    zeros = np.zeros(4, np.int64)
    found = Substitutes(GRAPH, zeros, zeros, matched, matched, matched, distances).weights("distance")
    assert found is not None
    assert found.tolist() == pytest.approx([4 / 3, 4 / 3, 4 / 3, 0.0])


@pytest.mark.parametrize("rule", ["distance", 0.4])
@pytest.mark.parametrize("target", ["outcome", "printed"])
def test_the_loss_weighs_every_positive_by_its_substitute(rule: Weighting, target: str) -> None:
    net, batch = model(3, treatment=True), make()
    sums, _ = GradientComputer(context(net, cf_weight=rule, cf_target=target), 2).compute(batch)
    found, triples = substitutes(), batch.asked.triples[:, 0]
    weights = found.weights(rule)
    assert weights is not None
    evidence = net.encode(Planner(GRAPH, 2).plan(batch.heads, batch.relations, batch.candidates, batch.hidden))
    treated = TREATMENT.treated(batch.heads, batch.relations, batch.candidates, batch.hidden)
    factual = query_losses(net.decode(evidence, torch.from_numpy(treated)), torch.ones(len(batch), 1), 1.0).sum()
    expected = torch.zeros((), dtype=torch.double)
    for row, triple in enumerate(triples.tolist()):
        if found.matched[triple]:
            logits = net.decode(evidence, torch.from_numpy(~treated))[row : row + 1]
            answer = torch.tensor([[1.0 if target == "printed" else float(found.outcomes[triple])]])
            expected = expected + weights[triple] * query_losses(logits, answer, 1.0)[0, 0]
    assert sums.terms["counterfactual"] == pytest.approx(float(expected.detach()))
    check_gradients(net, sums, factual + 0.5 * expected)


def own_questions(net: KGCF, batch: Batch, found: Substitutes, weights: np.ndarray | None) -> torch.Tensor:
    """Σ over the batch's matched answers of their substitutes' losses, each on the graph rebuilt for it."""
    asked = ask_substitutes(batch, found, "all", Rules(5, "triple"))
    assert asked is not None
    own, stands_for = asked
    assert stands_for == 1.0
    total = torch.zeros((), dtype=torch.double)
    for row, triple in enumerate(own.asked.triples[:, 0].tolist()):
        position = batch.asked.triples[:, 0].tolist().index(triple)
        turned, relation = bool(batch.asked.turned[position]), int(batch.relations[position])
        ends = [int(found.heads[triple]), int(found.tails[triple])]
        head, answer = ends[::-1] if turned else ends
        assert (own.heads[row], own.relations[row], own.candidates[row, 0]) == (head, relation, answer)
        plain = (answer, relation - 3, head) if turned else (head, relation, answer)
        seen = GRAPH.without([plain]) if GRAPH.contains(np.array([plain]))[0] else GRAPH
        assert len(seen) == len(everything(own.hidden, row, GRAPH))
        candidates = own.candidates[row : row + 1]
        evidence = net.encode(Planner(seen, 2).plan([head], [relation], candidates))
        fresh = assign_treatment(seen, TreatmentSettings())
        flags = fresh.treated(np.array([head]), np.array([relation]), candidates)
        loss = query_losses(
            net.decode(evidence, torch.from_numpy(flags)), torch.tensor([[len(seen) < len(GRAPH)]]), 1.0
        )
        total = total + loss[0, 0] * (1.0 if weights is None else weights[triple])
    assert len(own) == found.matched[batch.asked.triples].sum()
    return total


@pytest.mark.parametrize("rule", ["equal", "distance"])
def test_a_substitute_is_asked_for_with_its_own_state_treatment_and_outcome(rule: Weighting) -> None:
    net, batch, found = model(3, treatment=True), make(), substitutes()
    kinds = found.outcomes[batch.asked.triples[:, 0]][found.matched[batch.asked.triples[:, 0]]]
    assert 0 < kinds.sum() < len(kinds), "the batch must have substitutes of both outcomes"
    plain, _ = GradientComputer(context(net, alpha=0.0), 1).compute(batch)
    sums, _ = GradientComputer(context(net, cf_state="substitute", cf_weight=rule, cf_pairs="all"), 2).compute(batch)
    assert sums.queries == plain.queries
    assert sums.terms["factual"] == pytest.approx(plain.terms["factual"])
    expected = own_questions(net, batch, found, found.weights(rule))
    assert sums.terms["counterfactual"] == pytest.approx(float(expected.detach()))
    treated = TREATMENT.treated(batch.heads, batch.relations, batch.candidates, batch.hidden)
    evidence = net.encode(Planner(GRAPH, 2).plan(batch.heads, batch.relations, batch.candidates, batch.hidden))
    factual = query_losses(net.decode(evidence, torch.from_numpy(treated)), torch.ones(len(batch), 1), 1.0).sum()
    check_gradients(net, sums, factual + 0.5 * expected)


def test_both_states_add_up_and_shares_join_to_the_whole() -> None:
    net, batch = model(3, treatment=True, context="unreached"), make(24)
    found = {
        state: GradientComputer(context(net, cf_state=state, cf_pairs="all"), 1).compute(batch)[0]
        for state in ("answer", "substitute", "both")
    }
    terms = {state: sums.terms["counterfactual"] for state, sums in found.items()}
    assert terms["both"] == pytest.approx(terms["answer"] + terms["substitute"])
    computer = GradientComputer(context(net, cf_state="both", cf_pairs="all"), 3)
    first, second = (computer.compute(batch, rank, 2, False)[0] for rank in range(2))
    first.add(second)
    for joined, whole in zip(first.gradients, found["both"].gradients, strict=True):
        assert torch.allclose(joined, whole, atol=1e-12)


def test_fewer_questions_stand_for_all_matched() -> None:
    batch, found = make(24), substitutes()
    asked = ask_substitutes(batch, found, 4, Rules(5, "triple"))
    assert asked is not None
    own, stands_for = asked
    count = int(found.matched[batch.asked.triples].sum())
    assert (len(own), stands_for) == (4, count / 4)
    net = model(3, treatment=True)
    few, _ = GradientComputer(context(net, cf_state="substitute", cf_pairs=4), 2).compute(batch)
    plan = Planner(GRAPH, 2).plan(own.heads, own.relations, own.candidates, own.hidden)
    flags = torch.from_numpy(TREATMENT.treated(own.heads, own.relations, own.candidates, own.hidden))
    outcomes = torch.from_numpy(found.outcomes[own.asked.triples])
    losses = query_losses(net.decode(net.encode(plan), flags), outcomes, 1.0)
    assert few.terms["counterfactual"] == pytest.approx(float(losses.detach().sum()) * count / 4)


def test_unreached_substitutes_teach_nothing() -> None:
    net, batch, found = model(3, treatment=True), make(90), substitutes()
    asked = ask_substitutes(batch, found, "all", Rules(5, "triple"))
    assert asked is not None
    own = asked[0]
    evidence = net.encode(Planner(GRAPH, 2).plan(own.heads, own.relations, own.candidates, own.hidden))
    assert 0 < int(evidence.reached[:, 0].sum()) < len(own)
    flags = torch.from_numpy(TREATMENT.treated(own.heads, own.relations, own.candidates, own.hidden))
    losses = query_losses(net.decode(evidence, flags), torch.from_numpy(found.outcomes[own.asked.triples]), 1.0)
    skipping = step_context(
        net, GRAPH, TREATMENT, found, skip_unreached=True, alpha=0.5, cf_state="substitute", cf_pairs="all"
    )
    sums, _ = GradientComputer(skipping, 1).compute(batch)
    assert sums.terms["counterfactual"] == pytest.approx(float(losses[evidence.reached[:, 0]].detach().sum()))


def test_training_takes_the_distances_of_the_table() -> None:
    count = len(GRAPH)
    flags, distances = np.ones(count, np.bool_), np.arange(count) / 10
    ends = GRAPH.triples[:, [0, 2]]
    table = CounterfactualTable(GRAPH.triples, ends, distances, flags, flags, flags, flags, "observed", True, "triple")
    found = as_substitutes(GRAPH, table).distances
    assert found is not None
    assert found.tolist() == distances.tolist()


def test_a_substitute_asked_for_has_no_printed_target() -> None:
    with pytest.raises(SettingsError, match=r"never the printed 1. Leave objective.cf_target = outcome"):
        configure(changes=("objective.cf_state=substitute", "objective.cf_target=printed"))
    assert configure(changes=("objective.cf_weight=0.25",)).objective.cf_weight == 0.25
    with pytest.raises(SettingsError, match="cf_weight"):
        configure(changes=("objective.cf_weight=1.5",))


def check_gradients(net: KGCF, sums: Sums, loss: torch.Tensor) -> None:
    expected = torch.autograd.grad(loss, list(net.parameters()), allow_unused=True)
    for (name, parameter), found, wanted in zip(net.named_parameters(), sums.gradients, expected, strict=True):
        reference = torch.zeros_like(parameter) if wanted is None else wanted
        assert torch.allclose(found, reference, atol=1e-10), name
