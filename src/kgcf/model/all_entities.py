"""Ranking: scores of every entity from a forward cone, the reached before the unreached."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from kgcf.model.all_entities_kernels import (
    Output,
    Slots,
    fill_unreached,
    put_reached_first,
    score_contexts,
    score_reached,
)
from kgcf.model.decoder import Decoder, Head, rank_reached_first
from kgcf.propagation.kernels.simd import VECTOR_BYTES
from kgcf.propagation.layers.aggregation import array_of
from kgcf.propagation.layers.encoder import Encoder
from kgcf.propagation.layers.sparse import SparseStates, propagate
from kgcf.propagation.plan.contexts import Contexts, all_contexts, collect_contexts
from kgcf.propagation.plan.planner import Plan


@dataclass(frozen=True, eq=False)
class Background:
    """The contexts of all entities as the decoder reads them: U distinct ones, and whose they are."""

    table: Tensor | None  # [U, H] projected contexts; None where the decoder reads none
    classes: NDArray[np.int64]  # [B or 1, N] the row of every entity in the table


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What the decoder needs besides states: the treatments and contexts of all entities."""

    treated: NDArray[np.bool_] | None  # [B, N]
    table: Tensor | None  # as in `Background`
    classes: NDArray[np.int64]

    @property
    def options(self) -> int:
        """T, the treatments there are: one where the model has none."""
        return 1 if self.treated is None else 2


def reads_contexts(decoder: Decoder) -> bool:
    """Whether the contexts of all entities enter a ranking."""
    return decoder.variant in ("decoder", "unreached")


def make_background(decoder: Decoder, entity_count: int, contexts: Contexts | None) -> Background:
    """Project the contexts of every entity once, for any number of plans; weights that move need a new one."""
    if contexts is None:
        return Background(None, np.zeros((1, entity_count), np.int64))
    with torch.no_grad():
        return Background(contexts.project(decoder.context_weight), np.atleast_2d(contexts.rows))


def score_all(
    encoder: Encoder,
    decoder: Decoder,
    plan: Plan,
    treated: NDArray[np.bool_] | None = None,
    background: Background | None = None,
    compiled: bool | None = None,
    reached_first: bool = True,
) -> Tensor:
    """[B, N] ranking scores of every entity, the reached before the unreached, without gradients.

    `treated` [B, N] iff the decoder takes a treatment. A `background` is that of every entity where nothing is
    hidden, worth keeping between calls; made here where it is not given or does not fit. Without `reached_first` the
    scores are the logits themselves, for whoever has more evidence to add before ranking.
    """
    with torch.no_grad():
        result = propagate(encoder, plan, compiled=compiled)
        if background is None or len(plan.hidden.triples):
            background = _background_of(decoder, plan)
        evidence = _Evidence(treated, background.table, background.classes)
        score = _score_with_kernels if result.compiled else _score_with_torch
        return score(decoder, result, evidence, reached_first)


def _background_of(decoder: Decoder, plan: Plan) -> Background:
    """The background of a plan, of its own for every query where triples are hidden."""
    graph, contexts = plan.graph, None
    if reads_contexts(decoder) and len(plan.hidden.triples):
        everybody = np.arange(graph.entity_count)
        contexts = collect_contexts(graph, plan.hidden, np.arange(len(plan))[:, None], everybody)
    elif reads_contexts(decoder):
        contexts = all_contexts(graph)
    return make_background(decoder, graph.entity_count, contexts)


def _query_rows(head: Head, q: Tensor, options: int) -> Tensor:
    """[B·T, H] what the query, the treatment and the bias add to a head's hidden layer."""
    rows = (head.project("query", q) + head.hidden.bias).unsqueeze(1)  # [B, 1, H]
    if options == 2:
        treatments = torch.tensor([[0.0], [1.0]], dtype=q.dtype, device=q.device)  # [T, 1]
        rows = rows + head.project("treated", treatments)
    return rows.flatten(0, 1)  # [B, T, H] → [B·T, H]


def _score_with_kernels(
    decoder: Decoder, result: SparseStates, evidence: _Evidence, reached_first: bool = True
) -> Tensor:
    q, options = result.queries, evidence.options
    shape = (len(q), result.plan.graph.entity_count)
    scores, reached = q.new_empty(shape), np.zeros(shape, np.bool_)
    head = decoder.unreached or decoder.reached
    table = q.new_zeros(1, head.hidden.out_features) if evidence.table is None else evidence.table
    values = q.new_empty(len(q) * options, len(table))
    score_contexts(
        array_of(_fill(_query_rows(head, q, options))), array_of(_fill(table)), _output(head), array_of(values)
    )
    by_option = array_of(values.view(len(q), options, len(table)))  # [B·T, U] → [B, T, U]
    fill_unreached(by_option, evidence.classes, evidence.treated, array_of(scores))
    last, head = result.plan.layers[-1], decoder.reached
    score_reached(
        Slots(last.slot_offsets, last.entities, array_of(_fill(head.project("state", result.states)))),
        array_of(_fill(_query_rows(head, q, options))),
        array_of(_fill(table)) if decoder.variant == "decoder" else None,
        evidence.classes,
        evidence.treated,
        _output(head),
        array_of(scores),
        reached,
    )
    if reached_first:
        put_reached_first(array_of(scores), reached)
    return scores


def _output(head: Head) -> Output:
    """The last layer of a head, as the kernels take it."""
    return Output(array_of(_fill(head.output.weight)[0]), float(head.output.bias))


def _fill(rows: Tensor) -> Tensor:
    """Rows [·, H] padded with zero columns to whole vectors."""
    missing = -rows.shape[1] % (VECTOR_BYTES // rows.element_size())
    return functional.pad(rows, (0, missing)) if missing else rows


def _score_with_torch(
    decoder: Decoder, result: SparseStates, evidence: _Evidence, reached_first: bool = True
) -> Tensor:
    """The same with plain torch operations, for other devices."""
    q, options, device = result.queries, evidence.options, result.queries.device
    shape = (len(q), result.plan.graph.entity_count)
    head = decoder.unreached or decoder.reached
    rows = _query_rows(head, q, options).unsqueeze(1)  # [B·T, 1, H]
    hidden = rows if evidence.table is None else rows + evidence.table  # [B·T, 1 or U, H]
    values = head.output(torch.relu(hidden)).view(len(q), options * hidden.shape[1])  # [B·T, U, 1] → [B, T·U]
    which = np.broadcast_to(evidence.classes, shape)
    if evidence.treated is not None:
        which = which + evidence.treated * np.int64(values.shape[1] // 2)
    scores = values.gather(1, torch.from_numpy(which.copy()).to(device))
    last, head = result.plan.layers[-1], decoder.reached
    queries, entities = torch.from_numpy(last.queries).to(device), torch.from_numpy(last.entities).to(device).long()
    position = last.queries * options
    if evidence.treated is not None:
        position = position + evidence.treated[last.queries, last.entities]
    hidden = head.project("state", result.states) + _query_rows(head, q, options)[torch.from_numpy(position).to(device)]
    if decoder.variant == "decoder" and evidence.table is not None:
        classes = np.broadcast_to(evidence.classes, shape)[last.queries, last.entities]
        hidden = hidden + evidence.table[torch.from_numpy(classes).to(device)]
    scores[queries, entities] = head.output(torch.relu(hidden)).squeeze(1)  # [S, 1] → [S]
    reached = torch.zeros(shape, dtype=torch.bool, device=device)
    reached[queries, entities] = True
    return rank_reached_first(scores, reached) if reached_first else scores
