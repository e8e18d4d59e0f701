"""What matching found for every train triple, and the discrepancy between positives and their substitutes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove, hide_by_rule
from kgcf.model.kgcf import KGCF
from kgcf.propagation.layers.sparse import propagate
from kgcf.propagation.plan.planner import Budget, Plan, Planner
from kgcf.training.batches import Batch
from kgcf.training.objective import Discrepancy, discrepancy
from kgcf.training.passes import Asked


@dataclass(frozen=True, eq=False)
class Substitutes:
    """For each of E train triples (h, r, t): its nearest pair (a, b) with the other treatment."""

    graph: KnowledgeGraph
    heads: NDArray[np.int64]  # [E] a; −1 where nothing was matched
    tails: NDArray[np.int64]  # [E] b
    matched: NDArray[np.bool_]  # [E] whether there is such a pair
    treatments: NDArray[np.bool_]  # [E] T^CF: the treatment of (a, b), T^F where nothing was matched
    outcomes: NDArray[np.bool_]  # [E] A^CF

    def flips(self, triples: NDArray[np.int64], factual: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """[…] of which triples L_CF turns T round: those whose T^F […] is not that of their substitute.

        The table stands without the links of the answer. A query that hides links of its negatives too may, seldom,
        have another T^F than the table says, the substitute's: then there is nothing to turn, as for the unmatched.
        """
        result: NDArray[np.bool_] = self.matched[triples] & (factual != self.treatments[triples])
        return result


def pick_pairs(batch: Batch, found: Substitutes | None, most: int | Literal["all"], remove: Remove) -> Batch | None:
    """Positives and their substitutes as one batch of single-candidate queries: P positives, then P substitutes.

    The first `most` matched answers of the batch are taken. A head query (t, r⁻¹, h) has the substitute
    (b, r⁻¹, a). Each query hides its own triple where the graph has it, or all links of its pair.
    """
    if found is None:
        return None
    matched = np.argwhere(found.matched[batch.asked.triples] & batch.asked.answered)
    rows, columns = matched.T if most == "all" else matched[:most].T
    if not len(rows):
        return None
    triples, turned = batch.asked.triples[rows, columns], batch.asked.turned[rows]
    a, b = found.heads[triples], found.tails[triples]
    heads = np.concatenate([batch.heads[rows], np.where(turned, b, a)])
    answers = np.concatenate([batch.candidates[rows, columns], np.where(turned, a, b)])
    relations = np.tile(batch.relations[rows], 2)
    hidden = hide_by_rule(found.graph, heads, relations, answers[:, None], remove)
    asked = Asked(np.tile(triples, 2)[:, None], np.ones(2 * len(triples), np.int64), np.tile(turned, 2))
    keys = batch.keys[rows]
    return Batch(asked, heads, relations, answers[:, None], hidden, np.concatenate([keys, ~keys]))


def differentiate_discrepancy(
    model: KGCF, planner: Planner, pairs: Batch, kind: Discrepancy, budget: Budget, fan_in: int | None = None
) -> tuple[float, list[Tensor]]:
    """L_disc between x_L of the positives and x_L of their substitutes, and its gradient by every parameter.

    The loss compares all states at once, but the memory may not hold all plans at once. Where one plan does not
    hold all pairs, the states are computed first; then every plan is made again and differentiated on its own, by
    what the loss says about its states.
    """
    asked = pairs.heads, pairs.relations, pairs.candidates, pairs.hidden, budget, pairs.thinning(fan_in)
    parts = planner.parts(*asked)
    first = next(parts)
    parameters = list(model.parameters())
    if len(first) == len(pairs):
        loss = _compare(_states(model, first), kind)
        return float(loss.detach()), _gradients(loss, parameters, None)
    with torch.no_grad():
        found = [_states(model, first)]
        del first  # or it would be held beside all others
        found += [_states(model, plan) for plan in parts]
    states = torch.cat(found).requires_grad_()
    loss = _compare(states, kind)
    (slopes,) = torch.autograd.grad(loss, states)  # [2P, D]
    totals = [torch.zeros_like(parameter) for parameter in parameters]
    for plan in planner.parts(*asked):
        slope = slopes[plan.first : plan.first + len(plan)]
        for total, gradient in zip(totals, _gradients(_states(model, plan), parameters, slope), strict=True):
            total += gradient
    return float(loss.detach()), totals


def _states(model: KGCF, plan: Plan) -> Tensor:
    """[B, D] x_L of the only candidate of every query; no context is needed."""
    return propagate(model.encoder, plan).of_candidates()[:, 0]  # [B, 1, D] → [B, D]


def _compare(states: Tensor, kind: Discrepancy) -> Tensor:
    half = len(states) // 2
    return discrepancy(states[:half], states[half:], kind)


def _gradients(values: Tensor, parameters: list[nn.Parameter], slopes: Tensor | None) -> list[Tensor]:
    """The gradient of values, weighted by slopes, with respect to every parameter."""
    if not values.requires_grad:  # nothing is reached
        return [torch.zeros_like(parameter) for parameter in parameters]
    found = torch.autograd.grad(values, parameters, slopes, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]
