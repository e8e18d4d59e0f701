"""Plans into scores: the candidates of training queries, differentiable."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from kgcf.model.decoder import Decoder
from kgcf.propagation.layers.encoder import Encoder
from kgcf.propagation.layers.sparse import propagate
from kgcf.propagation.plan.contexts import collect_contexts
from kgcf.propagation.plan.planner import Plan


@dataclass(frozen=True, eq=False)
class Scored:
    """What a batch says about its candidates."""

    logits: Tensor  # [B, K]
    reached: Tensor  # [B, K] bool
    states: Tensor  # [B, K, D] x_L, zero where unreached
    queries: Tensor  # [B, D] q_r


def score_candidates(encoder: Encoder, decoder: Decoder, plan: Plan, treated: Tensor | None = None) -> Scored:
    """Logits of the plan's candidates, differentiable; `treated` [B, K] iff the decoder takes a treatment."""
    result = propagate(encoder, plan)
    states, reached = result.of_candidates(), result.reached
    context = candidate_contexts(decoder, plan, result.queries)
    wanted = reached if decoder.variant == "unreached" else None
    logits = decoder(states, result.queries.unsqueeze(1), treated, context, wanted)  # q [B, 1, D] meets [B, K, D]
    return Scored(logits, reached, states, result.queries)


def candidate_contexts(decoder: Decoder, plan: Plan, like: Tensor) -> Tensor | None:
    """[B, K, H] the projected contexts of a plan's candidates; None where the decoder does not read them."""
    if decoder.variant not in ("decoder", "unreached"):
        return None
    assert plan.candidates is not None
    contexts = collect_contexts(plan.graph, plan.hidden, np.arange(len(plan))[:, None], plan.candidates)
    return contexts.project(decoder.context_weight)[contexts.row_tensor(like)]
