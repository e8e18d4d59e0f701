"""Relations as sparse matrices: one product moves all questions of a batch one edge further."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph

_AT_ONCE = 1 << 24  # products of two numbers that the backward pass holds


class Operators:
    """The edges of a graph, forward and inverse, as the matrix Σ_k a_k M_k of any weights a [2R].

    M_k[t, h] = 1 for every edge (h, k, t). The matrix is kept by target and, for gradients, by source.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        count = graph.entity_count
        self.graph = graph
        self.relation_count = 2 * graph.relation_count
        self._sources = np.repeat(np.arange(count), np.diff(graph.offsets)).astype(np.int32)
        self._targets, self._relations = graph.edge_tails, graph.edge_relations
        self._by_target = np.argsort(self._targets, kind="stable")
        starts = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(self._targets, minlength=count), out=starts[1:])
        self._target_starts, self._shape = starts, (count, count)

    def move(self, weights: NDArray[np.float32], state: NDArray[np.float32]) -> NDArray[np.float32]:
        """[N, B] what arrives: Σ over edges (h, k, t) of a_k · state[h]."""
        values = weights[self._relations[self._by_target]]
        matrix = csr_matrix((values, self._sources[self._by_target], self._target_starts), shape=self._shape)
        arrived: NDArray[np.float32] = matrix @ state
        return arrived

    def gradients(
        self, weights: NDArray[np.float32], state: NDArray[np.float32], arrived: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Gradients of `move` for its weights [2R] and its state [N, B], from that of what arrives."""
        matrix = csr_matrix((weights[self._relations], self._targets, self.graph.offsets), shape=self._shape)
        products = np.empty(len(self._targets))
        step = max(1, _AT_ONCE // max(state.shape[1], 1))
        for first in range(0, len(products), step):
            part = slice(first, first + step)
            products[part] = np.einsum("eb,eb->e", arrived[self._targets[part]], state[self._sources[part]])
        summed = np.bincount(self._relations, products, minlength=self.relation_count)
        return summed.astype(np.float32), matrix @ arrived


class _Move(torch.autograd.Function):
    """`Operators.move` with gradients."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, state: Tensor, operators: Operators) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(weights, state)
        ctx.operators = operators
        return torch.from_numpy(operators.move(weights.detach().numpy(), state.detach().numpy()))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401
        weights, state = (part.detach().numpy() for part in ctx.saved_tensors)
        found = ctx.operators.gradients(weights, state, np.ascontiguousarray(gradients[0].numpy()))
        return torch.from_numpy(found[0]), torch.from_numpy(found[1]), None


def move(
    operators: Operators, weights: Tensor, state: Tensor, hidden: Tensor | None = None, relation: int = 0
) -> Tensor:
    """[N, B] one edge further along all relations, each weighted; B questions about one relation.

    `hidden` [2, B] are head and tail of the triple that a question must not see: what came along it and along its
    inverse is taken back.
    """
    arrived: Tensor = _Move.apply(weights, state, operators)  # type: ignore[no-untyped-call]
    if hidden is None:
        return arrived
    heads, tails = hidden
    column = torch.arange(state.shape[1])
    inverse = int(operators.graph.inverse(np.array(relation)))
    arrived = arrived.index_put((tails, column), -weights[relation] * state[heads, column], accumulate=True)
    return arrived.index_put((heads, column), -weights[inverse] * state[tails, column], accumulate=True)
