"""Sparse propagation: the encoder's layers on the slots of a plan, exactly the dense result where it matters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.propagation.layers.aggregation import aggregate, wire
from kgcf.propagation.layers.encoder import Encoder, EncoderLayer
from kgcf.propagation.layers.fused import advance, can_fuse
from kgcf.propagation.layers.grouped_by_degree import advance_by_degree, can_group
from kgcf.propagation.layers.torch_operations import TORCH_ROWS, aggregate_with_torch
from kgcf.propagation.plan.contexts import Contexts, collect_contexts
from kgcf.propagation.plan.planner import Budget, LayerPlan, Plan


@dataclass(frozen=True, eq=False)
class SparseStates:
    """The last states of the slots of layer L; an unreached candidate has none."""

    plan: Plan
    queries: Tensor  # [B, D] q_r
    states: Tensor  # [S, D] by slot of layer L
    rows: Tensor | None  # [B, K] slot of every candidate, −1 if unreached; None when ranking
    compiled: bool  # whether the kernels made them

    @property
    def reached(self) -> Tensor:
        """[B, K] whether any walk of at most L visible edges leads from the head to the candidate."""
        assert self.rows is not None, "when ranking, the slots of layer L are the reached entities"
        return self.rows >= 0

    def of_candidates(self) -> Tensor:
        """[B, K, D] the state of every candidate, zero if unreached."""
        assert self.rows is not None, "when ranking, the slots of layer L are the reached entities"
        return pick_rows(self.states, self.rows)


def runs_compiled(device: torch.device) -> bool:
    """Whether the numba kernels run on a device: on a CPU; elsewhere the plan is executed with torch operations."""
    return device.type == "cpu"


def budget_for(encoder: Encoder, memory: float) -> Budget:
    """What the plans of an encoder may take of so many bytes where its weights are."""
    settings, weight = encoder.settings, encoder.query.weight
    messages = 0 if runs_compiled(weight.device) else TORCH_ROWS
    vectors = 2 * len(weight) * settings.layers if settings.dependent else 0  # [2R, D] per layer, and their gradients
    return Budget(memory, settings.width, settings.statistics, weight.element_size(), messages, vectors)


def propagate(
    encoder: Encoder,
    plan: Plan,
    edge_weights: Sequence[Tensor] | None = None,
    compiled: bool | None = None,
) -> SparseStates:
    """Run the encoder on a plan.

    `edge_weights`, one [M] per layer 1 … L in the order of the plan's edges, multiply the messages on top of the
    graph's own weights; they are there to be differentiated. `compiled` overrules `runs_compiled`.
    """
    asked, which = np.unique(plan.relations, return_inverse=True)  # queries of one relation share its vectors
    kinds = encoder.queries(torch.from_numpy(asked).to(encoder.query.weight.device))  # [U, D]
    q = kinds[torch.from_numpy(which).to(kinds.device)]  # [B, D]
    compiled = runs_compiled(q.device) if compiled is None else compiled
    contexts = _slot_contexts(plan) if encoder.settings.context == "layers" else None
    x = _boundary(plan, q)
    begin = 0
    for depth, (layer, step) in enumerate(zip(encoder.steps(), plan.layers[1:], strict=True)):
        weights = _message_weights(plan, step, None if edge_weights is None else edge_weights[depth], q)
        context = None
        if contexts is not None:
            listed = contexts.row_tensor(q)[begin : begin + len(step.entities)]
            context = contexts.project(layer.context_weight)[listed]  # [U, D] → [S, D]
        vectors = layer.relation_vectors(kinds)
        rows = which * vectors.shape[1] if vectors.dim() == 3 else np.zeros_like(which)
        vectors = vectors.reshape(-1, x.shape[1])  # [U, 2R, D] → [U·2R, D]
        x = _advance(plan, layer, step, x, _Sent(vectors, rows, q, weights), context, compiled)
        begin += len(step.entities)
    candidate_rows = None if plan.rows is None else torch.from_numpy(plan.rows).to(q.device)
    return SparseStates(plan, q, x, candidate_rows, compiled)


def _boundary(plan: Plan, q: Tensor) -> Tensor:
    """[S_0, D] the states before the first layer: q_r at the heads; others, where they have one, are zero."""
    queries, entities = plan.layers[0].queries, plan.layers[0].entities
    x = q[torch.from_numpy(queries).to(q.device)]
    if not plan.everybody:
        return x
    at_heads = torch.from_numpy(entities == plan.heads[queries]).to(q.device)
    return torch.where(at_heads.unsqueeze(1), x, 0)


@dataclass(frozen=True, eq=False)
class _Sent:
    """What the messages of a layer are made of, besides the states."""

    vectors: Tensor  # [T, D] relation vectors
    rows: NDArray[np.int64]  # [B] where a query's begin
    q: Tensor  # [B, D]
    weights: Tensor | None  # [M]


def _advance(
    plan: Plan, layer: EncoderLayer, step: LayerPlan, x: Tensor, sent: _Sent, context: Tensor | None, compiled: bool
) -> Tensor:
    """[S, D] the states after one layer, from those before [P, D]."""
    vectors, rows, q, weights = sent.vectors, sent.rows, sent.q, sent.weights
    if compiled and can_group(layer, plan, x):
        return advance_by_degree(layer, step, x, vectors, rows, q, weights, context)
    if compiled and can_fuse(layer.settings, x):
        return advance(layer, step, x, vectors, rows, q, weights, context)
    if compiled:
        statistics = aggregate(layer.settings, wire(step, rows), x, vectors, q, weights)
    else:
        statistics = aggregate_with_torch(layer.settings, step, rows, x, vectors, q, weights)
    own = pick_rows(x, torch.from_numpy(step.previous).to(q.device))
    scale = torch.from_numpy(step.scales).to(q)
    return layer.update(own, statistics, scale, context)


def pick_rows(table: Tensor, rows: Tensor) -> Tensor:
    """[…, D] rows of a table [S, D]; zeros where the row is −1."""
    if not len(table):
        return table.new_zeros(*rows.shape, table.shape[1])
    return torch.where((rows >= 0).unsqueeze(-1), table[rows.clamp(min=0)], 0)


def _message_weights(plan: Plan, step: LayerPlan, extra: Tensor | None, like: Tensor) -> Tensor | None:
    """[M] what multiplies the messages of a layer; None: nothing does."""
    if plan.graph.weights is None:
        return extra
    own = torch.from_numpy(plan.graph.edge_weights[step.entries]).to(like)
    return own if extra is None else own * extra


def _slot_contexts(plan: Plan) -> Contexts:
    """The contexts of all slots of the layers 1 … L, one after another."""
    queries = torch.cat([torch.from_numpy(layer.queries) for layer in plan.layers[1:]])
    entities = torch.cat([torch.from_numpy(layer.entities) for layer in plan.layers[1:]])
    return collect_contexts(plan.graph, plan.hidden, queries.numpy(), entities.numpy())
