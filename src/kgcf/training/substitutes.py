"""What matching found for every train triple: its weight, its substitute as a question, the discrepancy of both."""

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
from kgcf.training.batches import Batch, Rules, ask_against
from kgcf.training.objective import Discrepancy, Weighting, discrepancy
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
    distances: NDArray[np.float64] | None = None  # [E] from the triple, infinite where unmatched; None: nobody asks

    def flips(self, triples: NDArray[np.int64], factual: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """[…] of which triples L_CF turns T round: those whose T^F […] is not that of their substitute.

        The table stands without the links of the answer. A query that hides links of its negatives too may, seldom,
        have another T^F than the table says, the substitute's: then there is nothing to turn, as for the unmatched.
        """
        result: NDArray[np.bool_] = self.matched[triples] & (factual != self.treatments[triples])
        return result

    def weights(self, rule: Weighting) -> NDArray[np.float64] | None:
        """[E] what every triple weighs in L_CF, 1 on average over the matched, 0 elsewhere; None: all weigh alike.

        `distance`: exp(−d / median d). A number q: one weight for those with d at most the q-quantile of d, else 0.
        """
        if rule == "equal":
            return None
        assert self.distances is not None
        result = np.zeros(len(self.matched))
        near = self.distances[self.matched]
        if not len(near):
            return result
        if rule == "distance":
            middle = np.median(near)
            found = np.exp(-near / middle) if middle > 0 else (near == 0).astype(np.float64)
        else:
            found = (near <= np.quantile(near, rule)).astype(np.float64)
        result[self.matched] = found / found.mean()
        return result


def ask_substitutes(
    batch: Batch, found: Substitutes, most: int | Literal["all"], rules: Rules
) -> tuple[Batch, float] | None:
    """Substitutes of the batch's matched answers as questions of their own, and how many matched each stands for.

    (a, r, ?) with b first among its candidates, (b, r⁻¹, ?) with a where heads are asked for, against negatives of
    its own and with a hidden set of its own, as a train triple is asked. First answers of all passes come before
    second ones. Negatives are drawn by the keys of the batch.
    """
    columns, rows = np.argwhere((found.matched[batch.asked.triples] & batch.asked.answered).T).T
    if not len(rows):
        return None
    taken = slice(None) if most == "all" else slice(most)
    triples, turned, heads, answers = _turned_pairs(batch, found, rows[taken], columns[taken])
    asked = Asked(triples[:, None], np.ones(len(triples), np.int64), turned)
    generator = np.random.default_rng(batch.keys.tolist())
    relations = batch.relations[rows[taken]]
    own = ask_against(found.graph, asked, heads, relations, answers[:, None], rules, generator)
    return own, len(rows) / len(triples)


def _turned_pairs(
    batch: Batch, found: Substitutes, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Of answers: their triples, whether heads are asked for, head and answer of their substitutes, so turned."""
    triples, turned = batch.asked.triples[rows, columns], batch.asked.turned[rows]
    a, b = found.heads[triples], found.tails[triples]
    return triples, turned, np.where(turned, b, a), np.where(turned, a, b)


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
    triples, turned, other_heads, other_answers = _turned_pairs(batch, found, rows, columns)
    heads = np.concatenate([batch.heads[rows], other_heads])
    answers = np.concatenate([batch.candidates[rows, columns], other_answers])
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
