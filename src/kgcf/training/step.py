"""The gradient of one batch: parts of it in threads, sums over queries, each divided by their number at the end."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, Remove
from kgcf.model.kgcf import KGCF, Evidence
from kgcf.propagation.layers.sparse import budget_for
from kgcf.propagation.plan.planner import Planner
from kgcf.propagation.workers import Workers
from kgcf.training.batches import Batch, Rules, rules_for
from kgcf.training.objective import ObjectiveSettings, query_losses
from kgcf.training.substitutes import Substitutes, ask_substitutes, differentiate_discrepancy, pick_pairs

TreatedAt = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], HiddenTriples | None], NDArray[np.bool_]]
PER_QUERY = ("factual", "counterfactual", "context")  # terms that are sums over queries; context: the left out too
TERMS = (*PER_QUERY, "discrepancy")


@dataclass
class Sums:
    """Gradients and losses summed over queries; adding two of them joins their queries."""

    gradients: list[Tensor]
    terms: dict[str, float]  # loss terms, summed over queries
    queries: int = 0  # answers that contributed, each as a query of its own
    unreached: int = 0  # left out: no visible path leads to the answer
    impossible: int = 0  # left out: no negative exists

    def add(self, other: "Sums") -> None:
        """Join the queries of another part."""
        for mine, theirs in zip(self.gradients, other.gradients, strict=True):
            mine += theirs
        for name, value in other.terms.items():
            self.terms[name] = self.terms.get(name, 0.0) + value
        self.queries += other.queries
        self.unreached += other.unreached
        self.impossible += other.impossible

    def mean_gradients(self, model: KGCF) -> list[Tensor]:
        """The gradient of the loss whose terms are means over the queries that they were summed over.

        The context term runs over all queries and moves the head of the unreached alone; the other terms run over
        the queries kept. These reach that head only by unreached answers, and where such are kept all queries are.
        So every parameter has one number of queries to be divided by.
        """
        head = model.decoder.unreached
        separate = set() if head is None else {id(parameter) for parameter in head.parameters()}
        kept, asked = max(self.queries, 1), max(self.queries + self.unreached, 1)
        divisors = (asked if id(parameter) in separate else kept for parameter in model.parameters())
        return [gradient / divisor for gradient, divisor in zip(self.gradients, divisors, strict=True)]


@dataclass(frozen=True)
class StepContext:
    """Everything a gradient needs besides the batch."""

    model: KGCF
    graph: KnowledgeGraph
    objective: ObjectiveSettings
    treated: TreatedAt | None  # T of candidates; None: the model has no treatment
    leave_one_out: bool  # whether T is taken on the graph without the hidden set
    substitutes: Substitutes | None  # of every train triple; None: α = β = 0
    remove: Remove
    skip_unreached: bool
    memory: float  # bytes that one thread may hold
    fan_in: int | None = None  # edges that an update aggregates at most; None: all

    @property
    def rules(self) -> Rules:
        """How passes are asked."""
        return rules_for(self.objective, self.remove, self.model.encoder.settings)

    @cached_property
    def weights(self) -> NDArray[np.float64] | None:
        """[E] what every train triple weighs in L_CF; None: all weigh alike."""
        return None if self.substitutes is None else self.substitutes.weights(self.objective.cf_weight)

    def decodes(self, state: Literal["answer", "substitute"]) -> bool:
        """Whether L_CF decodes the answers' own states, or those of their substitutes."""
        objective = self.objective
        treats = self.substitutes is not None and self.treated is not None and objective.alpha > 0
        return treats and objective.cf_state in (state, "both")


Job = Callable[[StepContext, Planner, Batch], Sums]


class GradientComputer:
    """Computes batch gradients in `threads` threads, each with a planner of its own.

    The result depends on the number of threads and processes (the order of float additions), not on timing. Which
    queries a process takes depends on the number of processes alone.
    """

    def __init__(self, context: StepContext, threads: int) -> None:
        self._context = context
        self._workers = Workers(threads)
        encoder = context.model.encoder.settings
        self._planners = [Planner(context.graph, encoder.layers, everybody=encoder.everybody) for _ in range(threads)]

    def compute(self, batch: Batch, rank: int = 0, size: int = 1, discrepancy: bool = True) -> tuple[Sums, Sums]:
        """Sums over this process's share of the batch, and the gradient of L_disc if this process has to give it.

        The discrepancy compares two sets of states, so it is no sum over queries: one process computes it
        for the whole batch. Its `queries` is 1, or 0 where nothing was matched.
        """
        context, threads = self._context, self._workers.threads
        jobs: list[tuple[Job, Batch]] = [(_part, part) for part in _shares(batch, rank, size, threads)]
        jobs += [
            (job, part) for job, whole in self._own_questions(batch) for part in _shares(whole, rank, size, threads)
        ]
        summed = len(jobs)
        if discrepancy and context.objective.beta > 0:
            pairs = pick_pairs(batch, context.substitutes, context.objective.disc_pairs, context.remove)
            jobs += [] if pairs is None else [(_discrepancy, pairs)]
        with self._workers as workers:
            done = workers.map(lambda worker, job: job[0](context, self._planners[worker], job[1]), jobs)
        total, *others = done[:summed]
        for other in others:
            total.add(other)
        total.impossible += batch.impossible if rank == 0 else 0
        return total, done[summed] if len(done) > summed else _nothing(context.model)

    def _own_questions(self, batch: Batch) -> list[tuple[Job, Batch]]:
        """The substitutes of the whole batch that L_CF asks for in their own right, if it does."""
        context = self._context
        found = context.substitutes
        if found is None or not context.decodes("substitute"):
            return []
        asked = ask_substitutes(batch, found, context.objective.cf_pairs, context.rules)
        return [] if asked is None else [(partial(_own_part, stands_for=asked[1]), asked[0])]


def _shares(batch: Batch, rank: int, size: int, threads: int) -> list[Batch]:
    """This process's share of a batch, divided among its threads; other processes may have more of them, or fewer."""
    share = batch.part(rank, size)
    return [share.part(i, threads) for i in range(threads)]


def _nothing(model: KGCF) -> Sums:
    """Sums over no query."""
    return Sums([torch.zeros_like(p) for p in model.parameters()], {})


def _part(context: StepContext, planner: Planner, batch: Batch) -> Sums:
    """Plan, propagate, decode and differentiate one part of a batch."""
    parameters = list(context.model.parameters())
    total = _nothing(context.model)
    if not len(batch):
        return total
    budget = budget_for(context.model.encoder, context.memory)
    thinning = batch.thinning(context.fan_in)
    for plan in planner.parts(batch.heads, batch.relations, batch.candidates, batch.hidden, budget, thinning):
        rows = np.arange(plan.first, plan.first + len(plan))
        evidence = context.model.encode(plan)
        answered = torch.from_numpy(batch.asked.answered[rows]).to(evidence.reached.device)  # [B, A]
        keep = answered & evidence.reached[:, : answered.shape[1]] if context.skip_unreached else answered
        total.unreached += int((answered & ~keep).sum())
        losses = _losses(context, batch, rows, evidence, answered, keep)
        loss = losses["factual"] + context.objective.alpha * losses.get("counterfactual", torch.zeros(()))
        loss = loss + losses.get("context", torch.zeros(()))
        terms = {name: float(value.detach()) for name, value in losses.items()}
        total.add(Sums(_gradients(loss, parameters), terms, int(keep.sum())))
    return total


def _gradients(loss: Tensor, parameters: list[nn.Parameter]) -> list[Tensor]:
    """The gradient of a loss by every parameter, zero where it does not enter."""
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def _own_part(context: StepContext, planner: Planner, batch: Batch, stands_for: float) -> Sums:
    """The part of L_CF that substitutes give as questions of their own: their states, T and outcomes.

    They count as no queries: L_CF is a mean over the answers whose substitutes they are.
    """
    parameters, total = list(context.model.parameters()), _nothing(context.model)
    if not len(batch):
        return total
    assert context.substitutes is not None
    budget = budget_for(context.model.encoder, context.memory)
    thinning = batch.thinning(context.fan_in)
    for plan in planner.parts(batch.heads, batch.relations, batch.candidates, batch.hidden, budget, thinning):
        rows = np.arange(plan.first, plan.first + len(plan))
        evidence = context.model.encode(plan)
        counted = evidence.reached[:, 1:] if context.model.decoder.unreached is not None else None
        logits = context.model.decode(evidence, _treatments(context, batch, rows))
        triples = batch.asked.triples[rows]
        outcomes = torch.from_numpy(context.substitutes.outcomes[triples])
        losses = query_losses(logits, outcomes, context.objective.temperature, counted)  # [B, 1]
        if context.skip_unreached:
            losses = losses * evidence.reached[:, :1]
        loss = stands_for * _weighted(context, losses, triples).sum()
        total.add(
            Sums(_gradients(context.objective.alpha * loss, parameters), {"counterfactual": float(loss.detach())})
        )
    return total


def _weighted(context: StepContext, losses: Tensor, triples: NDArray[np.int64]) -> Tensor:
    """Losses [B, A] times what the triples [B, A] weigh in L_CF."""
    if context.weights is None:
        return losses
    return losses * torch.from_numpy(context.weights[triples]).to(losses)


def _losses(
    context: StepContext, batch: Batch, rows: NDArray[np.int64], evidence: Evidence, answered: Tensor, keep: Tensor
) -> dict[str, Tensor]:
    """The loss terms summed over the answers to keep [B, A]; that of the unreached's head over all that are answered.

    Ranking never compares a reached candidate with an unreached one where these have a head of their own,
    so the reached then learn from reached negatives alone.
    """
    model, objective = context.model, context.objective
    treated = None if context.treated is None else _treatments(context, batch, rows)
    ones = torch.ones(answered.shape)
    temperature = objective.temperature
    separate = model.decoder.unreached is not None
    counted = evidence.reached[:, answered.shape[1] :] if separate else None
    factual = query_losses(model.decode(evidence, treated), ones, temperature, counted)  # [B, A]
    losses = {"factual": factual[keep].sum()}
    if separate:
        background = query_losses(model.decode_unreached(evidence, treated), ones, temperature)
        losses["context"] = background[answered].sum()
    if context.decodes("answer") and context.substitutes is not None and treated is not None:
        found, triples = context.substitutes, batch.asked.triples[rows]
        flips = torch.from_numpy(found.flips(triples, treated[:, : answered.shape[1]].numpy()))  # [B, A]
        outcomes = torch.from_numpy(found.outcomes[triples]) | ~flips  # A^CF, or A^F = 1 where T stays
        targets = ones if objective.cf_target == "printed" else outcomes
        logits = model.decode(evidence, treated ^ flips.any(dim=1, keepdim=True))
        turned = query_losses(logits, targets, temperature, counted)
        unturned = factual if context.weights is None else torch.zeros_like(factual)
        turned = torch.where(flips.to(turned.device), _weighted(context, turned, triples), unturned)
        losses["counterfactual"] = turned[keep].sum()
    return losses


def _treatments(context: StepContext, batch: Batch, rows: NDArray[np.int64]) -> Tensor:
    """[B, K] T^F of every candidate, on the graph without the query's hidden set."""
    assert context.treated is not None
    hidden = _rows_of(batch.hidden, rows) if context.leave_one_out else None
    return torch.from_numpy(context.treated(batch.heads[rows], batch.relations[rows], batch.candidates[rows], hidden))


def _rows_of(hidden: HiddenTriples, rows: NDArray[np.int64]) -> HiddenTriples:
    """The hidden sets of consecutive queries."""
    offsets = hidden.offsets[rows[0] : rows[-1] + 2]
    return HiddenTriples(offsets - offsets[0], hidden.triples[offsets[0] : offsets[-1]])


def _discrepancy(context: StepContext, planner: Planner, pairs: Batch) -> Sums:
    """The gradient of L_disc over the pairs picked from the batch."""
    budget = budget_for(context.model.encoder, context.memory)
    kind, fan_in = context.objective.disc, context.fan_in
    loss, gradients = differentiate_discrepancy(context.model, planner, pairs, kind, budget, fan_in)
    return Sums(gradients, {"discrepancy": loss}, 1)
