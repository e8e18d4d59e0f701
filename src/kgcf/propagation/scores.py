"""Plans into scores: the candidates of training queries, or every entity when ranking."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.decoder import Decoder, rank_reached_first
from kgcf.encoder import Encoder
from kgcf.propagation.contexts import Contexts, all_contexts, collect_contexts
from kgcf.propagation.plan import Plan
from kgcf.propagation.sparse import SparseStates, propagate


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
    return decoder.project_context(contexts.dense(like))[contexts.row_tensor(like)]


def score_all(
    encoder: Encoder,
    decoder: Decoder,
    plan: Plan,
    treated: NDArray[np.bool_] | None = None,
    contexts: Contexts | None = None,
) -> Tensor:
    """[B, N] ranking scores of every entity, the reached before the unreached; `treated` is [B, N].

    `contexts` are those of every entity (`all_contexts(graph)`), worth keeping between calls; they are
    computed where they are needed and not given. A plan that hides triples computes its own.
    """
    with torch.no_grad():
        result = propagate(encoder, plan)
        table, rows = None, None
        if decoder.variant in ("decoder", "unreached"):
            if len(plan.hidden.triples):
                everybody = np.arange(plan.graph.entity_count)
                contexts = collect_contexts(plan.graph, plan.hidden, np.arange(len(plan))[:, None], everybody)
            contexts = contexts or all_contexts(plan.graph)
            table = decoder.project_context(contexts.dense(result.queries))  # [U, H]
            rows = np.broadcast_to(contexts.rows, (len(plan), plan.graph.entity_count))  # [B, N]
        scores = _score_unreached(decoder, plan, result.queries, treated, table, rows)
        reached = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
        _score_reached(decoder, result, treated, table, rows, scores, reached)
        return rank_reached_first(scores, reached)


def _score_unreached(
    decoder: Decoder,
    plan: Plan,
    q: Tensor,
    treated: NDArray[np.bool_] | None,
    table: Tensor | None,
    rows: NDArray[np.int64] | None,
) -> Tensor:
    """[B, N] logits of all entities as if no path reached them: one per (query, distinct context, treatment)."""
    count = 2 if treated is not None else 1
    distinct = 1 if table is None else len(table)
    per_query = []
    for vector in q:  # [D]
        options = []
        for choice in range(count):
            flag = None if treated is None else torch.full((distinct,), bool(choice), device=q.device)
            if decoder.unreached is not None:
                assert table is not None
                options.append(decoder.background(vector, flag, table))  # [U]
            else:
                nothing = torch.zeros(distinct, len(vector), dtype=q.dtype, device=q.device)
                options.append(decoder.evidence(nothing, vector, flag, table))
        per_query.append(torch.stack(options))  # [1 or 2, U]
    values = torch.stack(per_query)  # [B, 1 or 2, U]
    shape = (len(plan), plan.graph.entity_count)
    which = np.zeros(shape, np.int64) if rows is None else rows
    if treated is not None:
        which = which + treated * np.int64(distinct)
    return values.flatten(1).gather(1, torch.from_numpy(np.ascontiguousarray(which)).to(q.device))


def _score_reached(
    decoder: Decoder,
    result: SparseStates,
    treated: NDArray[np.bool_] | None,
    table: Tensor | None,
    rows: NDArray[np.int64] | None,
    scores: Tensor,
    reached: Tensor,
) -> None:
    """Write the logits of the reached entities, the slots of layer L, over the scores [B, N]."""
    last = result.plan.layers[-1]
    queries, device = last.queries, scores.device
    flags = None if treated is None else torch.from_numpy(treated[queries, last.entities]).to(device)
    context = None
    if decoder.variant == "decoder":
        assert table is not None
        assert rows is not None
        context = table[torch.from_numpy(rows[queries, last.entities]).to(device)]
    place = (torch.from_numpy(queries).to(device), torch.from_numpy(last.entities.astype(np.int64)).to(device))
    scores[place] = decoder.evidence(result.states, result.queries[place[0]], flags, context)
    reached[place] = True
