"""What one layer of the dense reference does to one block of entities: messages, statistics, update."""

from dataclasses import dataclass

import torch
from torch import Tensor

from kgcf.propagation.dense.blockwise import Block, LayerInputs
from kgcf.propagation.layers.encoder import SMALLEST_VARIANCE, EncoderLayer, Message
from kgcf.propagation.layers.segments import segment_extreme, segment_sum


@dataclass(frozen=True, eq=False)
class Visible:
    """What a batch of queries sees of the graph, the hidden sets taken out."""

    hidden_edges: Tensor  # [H] edges
    hidden_queries: Tensor  # [H] the query that must not see them
    hidden_at_heads: dict[int, Tensor]  # by a block's first entity: [·, 3] (edge, query, head) that enter a head
    degrees: Tensor  # [N, B] visible edges that enter
    scale: Tensor  # [N, B] log-degree over its mean
    coefficients: Tensor | None  # [2E, B] weight of every message, 0 where it is hidden; None: all ones


def make_messages(kind: Message, states: Tensor, vectors: Tensor) -> Tensor:
    """[…, D] what states […, D] become when they travel along relations […, D]."""
    if kind == "distmult":
        return states * vectors
    if kind == "transe":
        return states + vectors
    real, imaginary = states.chunk(2, -1)  # […, D] → 2 × […, D/2]
    cosine, sine = vectors.chunk(2, -1)
    return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)


def spread_vectors(layer: EncoderLayer, q: Tensor) -> Tensor:
    """[2R, B or 1, D] the layer's relation vectors for queries [B, D]."""
    vectors = layer.relation_vectors(q)
    return vectors.transpose(0, 1) if vectors.dim() == 3 else vectors.unsqueeze(1)


@dataclass(frozen=True, eq=False)
class LayerStep:
    """A layer's work on one block of entities: messages, statistics, update."""

    layer: EncoderLayer
    visible: Visible
    histograms: Tensor | None

    def parameters(self) -> list[Tensor]:
        """What `__call__` reads of the layer; relation vectors come as an input."""
        layer = self.layer
        linear = [layer.linear.weight, layer.linear.bias]
        norm = [] if layer.layer_norm is None else [layer.layer_norm.weight, layer.layer_norm.bias]
        return [*linear, *norm, *([] if layer.context_linear is None else [layer.context_linear.weight])]

    def __call__(self, block: Block, inputs: LayerInputs) -> Tensor:
        """[V, B, D] the next states of the block's entities."""
        shape = inputs.own.shape  # V, B, D
        vectors = inputs.vectors.index_select(0, block.relations)
        messages = make_messages(self.layer.settings.message, inputs.sent, vectors)  # [C, B, D]
        if inputs.coefficients is not None:
            messages = messages * inputs.coefficients.unsqueeze(2)
        statistics = self._aggregate(block, messages, inputs.boundary)
        context = None
        if self.layer.context_linear is not None and self.histograms is not None:
            context = self.layer.project_context(self.histograms[block.entities]).expand(shape).flatten(0, 1)
        scale = self.visible.scale[block.entities].flatten()  # [V, B] → [V·B]
        return self.layer.update(inputs.own.flatten(0, 1), statistics.flatten(0, 1), scale, context).view(shape)

    def _aggregate(self, block: Block, messages: Tensor, boundary: Tensor) -> Tensor:
        """[V, B, A, D] the statistics of the messages [C, B, D]; the boundary [V, B, D] counts as one more message."""
        how, parts = self.layer.settings.aggregate, []
        count = self.visible.degrees[block.entities].unsqueeze(2) + 1  # [V, B, 1]
        if how in ("sum", "mean", "pna"):
            total = segment_sum(messages, block.segments) + boundary
            parts.append(total if how == "sum" else total / count)
        if how in ("max", "min", "pna"):
            compared = self._hide_at_heads(block, messages, boundary)
            for largest in [True, False] if how == "pna" else [how == "max"]:
                parts.append(segment_extreme(compared, boundary, block.segments, largest))
        if how == "pna":
            square = (segment_sum(messages.square(), block.segments) + boundary.square()) / count
            parts.append((square - parts[0].square()).clamp(min=SMALLEST_VARIANCE).sqrt())
        return torch.stack(parts, dim=2)

    def _hide_at_heads(self, block: Block, messages: Tensor, boundary: Tensor) -> Tensor:
        """[C, B, D] messages among which a hidden one can be neither the largest nor the smallest.

        A hidden message is a zero. Where the boundary is zero this is one of the values anyway; at the heads,
        where it is not, the hidden messages become the boundary itself.
        """
        positions = self.visible.hidden_at_heads.get(block.entities.start)
        if positions is None:
            return messages
        edges, queries, heads = positions.unbind(1)
        values = boundary[heads - block.entities.start, queries].detach()
        return messages.index_put((edges - block.edges.start, queries), values)
