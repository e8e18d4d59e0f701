"""How much every edge in every layer matters: the gradient of the logit with respect to per-layer edge weights."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.choices import EdgeImportance as EdgeImportance
from kgcf.errors import SettingsError
from kgcf.model.kgcf import KGCF, Evidence, candidate_contexts
from kgcf.propagation.layers.sparse import propagate
from kgcf.propagation.plan.planner import Plan

STEPS = 4  # points between no message and all of them at which an integrated gradient is taken


@dataclass(frozen=True, eq=False)
class Importance:
    """The logit of one candidate and its derivative by the weight of each of the M messages of the plan.

    An integrated derivative is the mean of those at w = 1/2n, 3/2n, … for all messages at once, between none and all of
    them. Where the model is saturated, as after a layer norm that one message rules, a message that carries everything
    has hardly a derivative at w = 1; the integral sees it.
    """

    logit: float
    reached: bool  # whether any path of at most L visible edges leads to the candidate
    values: NDArray[np.float64] = field(repr=False)  # [M] layers 1 … L one after another, each in the plan's order


def weigh_edges(
    model: KGCF, plan: Plan, treated: Tensor | None, attribution: EdgeImportance = "gradient"
) -> Importance:
    """∂ logit / ∂ w_l(e) at w = 1 for a plan of one query with one candidate; `treated` [1, 1] as in `KGCF.decode`.

    Only the plan's own messages are differentiated: every other edge of the graph has derivative 0. With `integrated`
    the derivative is its mean on the way from w = 0 to w = 1.
    """
    if attribution not in ("gradient", "integrated"):
        raise SettingsError(f"There is no attribution called '{attribution}'. Choices: gradient, integrated.")
    assert plan.rows is not None, "explanations are about chosen candidates, not about a ranking"
    assert plan.rows.shape == (1, 1), "one explanation, one query, one candidate"
    if attribution == "gradient":
        return _differentiate(model, plan, treated, 1.0)
    with torch.no_grad():
        evidence = encode_weighted(model, plan, None)
        logit = float(model.decode(evidence, treated)[0, 0])
    points = [_differentiate(model, plan, treated, (i + 0.5) / STEPS) for i in range(STEPS)]
    values = np.mean([point.values for point in points], axis=0)
    return Importance(logit, points[0].reached, values)


def _differentiate(model: KGCF, plan: Plan, treated: Tensor | None, at: float) -> Importance:
    """The logit and its derivatives where every message weighs `at`."""
    like = model.encoder.query.weight
    weights = [like.new_full((len(step.sources),), at, requires_grad=True) for step in plan.layers[1:]]
    evidence = encode_weighted(model, plan, weights)
    logit = model.decode(evidence, treated)[0, 0]
    reached = bool(evidence.reached[0, 0])
    if not reached:
        return Importance(float(logit.detach()), False, np.zeros(sum(map(len, weights))))
    found = torch.autograd.grad(logit, weights, allow_unused=True)  # a layer without edges is not used
    parts = [np.zeros(len(w)) if g is None else g.cpu().double().numpy() for w, g in zip(weights, found, strict=True)]
    return Importance(float(logit.detach()), True, np.concatenate(parts))


def encode_weighted(model: KGCF, plan: Plan, weights: Sequence[Tensor] | None) -> Evidence:
    """`KGCF.encode` with one weight per message: [M_l] for every layer l = 1 … L."""
    found = propagate(model.encoder, plan, weights)
    context = candidate_contexts(model.decoder, plan, found.queries)
    return Evidence(found.of_candidates(), found.queries, found.reached, context)
