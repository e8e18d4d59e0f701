"""One layer as one differentiable operation: kernels around matrix products, and a backward pass by hand.

The same mathematics as `aggregate` followed by `EncoderLayer.update`, which the tests compare it with, without
the many small operations that autograd would record. Slots are taken in blocks that the cache holds. The backward pass
makes the statistics anew, block by block, instead of reading them back from memory.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import FunctionCtx

from kgcf.propagation.kernels.messages import Tables, Wiring
from kgcf.propagation.kernels.simd import VECTOR_BYTES, Floats
from kgcf.propagation.kernels.update import (
    Norm,
    add_parts,
    finish_backward,
    finish_forward,
    gather_own,
    scatter_own,
)
from kgcf.propagation.layers.aggregation import array_of, optional_array, run_backward, run_forward, wire
from kgcf.propagation.layers.encoder import EncoderLayer, EncoderSettings
from kgcf.propagation.layers.recycling import recycler
from kgcf.propagation.plan.planner import LayerPlan

BLOCK = 4096  # slots computed at once: their statistics stay in the cache between the kernels and the products


def can_fuse(settings: EncoderSettings, like: Tensor) -> bool:
    """Whether the width fills whole vectors, so that no padding is needed."""
    lanes = VECTOR_BYTES // like.element_size() * (2 if settings.message == "rotate" else 1)
    return settings.width % lanes == 0


def advance(
    layer: EncoderLayer,
    step: LayerPlan,
    x: Tensor,
    vectors: Tensor,
    vector_rows: NDArray[np.int64],
    q: Tensor,
    weights: Tensor | None,
    context: Tensor | None,
) -> Tensor:
    """[S, D] the states after one layer, from those before x [P, D], relation vectors [T, D], queries [B, D]."""
    norm = layer.layer_norm
    scales = step.scales.astype(array_of(x).dtype) if layer.settings.scalers > 1 else None
    frame = _Frame(layer.settings, wire(step, vector_rows), step.previous, scales, 0.0 if norm is None else norm.eps)
    result: Tensor = _Layer.apply(  # type: ignore[no-untyped-call]
        frame,
        x,
        vectors,
        q,
        weights,
        context,
        layer.linear.weight,
        layer.linear.bias,
        None if norm is None else norm.weight,
        None if norm is None else norm.bias,
    )
    return result


@dataclass(frozen=True, eq=False)
class _Frame:
    """What a layer needs besides tensors that may be differentiated."""

    settings: EncoderSettings
    wiring: Wiring
    previous: np.ndarray[tuple[int], np.dtype[np.int32]]  # [S]
    scales: Floats | None  # [S]
    epsilon: float

    def block(self, part: slice) -> Wiring:
        """The wiring of some slots."""
        return self.wiring._replace(first=part.start, last=part.stop)

    def scales_of(self, part: slice) -> Floats | None:
        """The scales of some slots."""
        return None if self.scales is None else self.scales[part]


class _Room:
    """Memory for one block of slots, used again by the next."""

    def __init__(self, rows: int, stacked: Tensor, like: Tensor, backward: bool = False) -> None:
        self._statistics = recycler.empty(rows, stacked.shape[1], like)  # [S, A·D]
        self._parts = recycler.empty(rows, stacked.shape[0], like)  # [S, C·D]
        self._own = recycler.empty(rows, like.shape[1], like)  # [S, D]
        self.gradient = recycler.empty(rows if backward else 0, stacked.shape[1], like)  # [S, A·D]

    def of(self, part: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Statistics, their products with the weights and own states, for the slots of a block."""
        rows = part.stop - part.start
        return self._statistics[:rows], self._parts[:rows], self._own[:rows]


def split_weight(settings: EncoderSettings, weight: Tensor) -> tuple[Tensor, Tensor]:
    """W₀ [D, D] of the own state and the C blocks of the statistics, stacked [C·D, A·D]."""
    width, columns = settings.width, settings.width * settings.statistics
    blocks = weight[:, width:].view(width, settings.scalers, columns).transpose(0, 1)  # [D, C·A·D] → [C, D, A·D]
    return weight[:, :width], blocks.reshape(-1, columns)


def _unblock(settings: EncoderSettings, own: Tensor, stacked: Tensor) -> Tensor:
    """[D, (1 + C·A)·D] the inverse of `split_weight`."""
    width = settings.width
    blocks = stacked.view(settings.scalers, width, -1).transpose(0, 1).reshape(width, -1)  # [C, D, A·D] → [D, C·A·D]
    return torch.cat([own, blocks], dim=1)


class _Layer(torch.autograd.Function):
    """Aggregate, multiply, finish; and back. Blocks of slots, so that what is computed is still in the cache."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        frame: _Frame,
        x: Tensor,
        vectors: Tensor,
        q: Tensor,
        weights: Tensor | None,
        context: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        gain: Tensor | None,
        shift: Tensor | None,
    ) -> Tensor:
        settings = frame.settings
        inputs, factors = Tables(array_of(x), array_of(vectors), array_of(q)), optional_array(weights)
        own_weight, stacked = split_weight(settings, weight)
        norm = Norm(array_of(gain), array_of(shift), frame.epsilon) if gain is not None and shift is not None else None
        count = len(frame.previous)
        mixed, out = (recycler.empty(count, settings.width, x) for _ in range(2))
        deviations = x.new_empty(count)
        room = _Room(min(count, BLOCK), stacked, x)
        for begin in range(0, count, BLOCK):
            part = slice(begin, min(begin + BLOCK, count))
            statistics, parts, own = room.of(part)
            run_forward(settings, frame.block(part), inputs, factors, array_of(statistics))
            gather_own(inputs.x, frame.previous[part], array_of(own))
            torch.mm(own, own_weight.T, out=mixed[part])  # [S, D]
            torch.mm(statistics, stacked.T, out=parts)  # [S, C·D]
            added = None if context is None else array_of(context[part])
            add_parts(array_of(mixed[part]), array_of(parts), frame.scales_of(part), array_of(bias), added, None)
            rest = array_of(own) if settings.residual else None
            finish_forward(array_of(mixed[part]), norm, rest, array_of(deviations[part]), array_of(out[part]))
        ctx.frame, ctx.norm, ctx.context = frame, norm, context is not None  # type: ignore[attr-defined]
        ctx.save_for_backward(x, vectors, q, weights, weight, mixed, deviations)  # type: ignore[arg-type]
        return out

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        frame: _Frame = ctx.frame  # type: ignore[attr-defined]
        norm: Norm | None = ctx.norm  # type: ignore[attr-defined]
        settings = frame.settings
        x, vectors, q, weights, weight, mixed, deviations = ctx.saved_tensors  # type: ignore[attr-defined]
        gradient = gradients[0].contiguous()
        own_weight, stacked = split_weight(settings, weight)
        inputs, factors = Tables(array_of(x), array_of(vectors), array_of(q)), optional_array(weights)
        found = [recycler.zeros(tensor) for tensor in (x, vectors, q)]
        sums = Tables(*(array_of(tensor) for tensor in found))
        weighted = ctx.needs_input_grad[4]  # type: ignore[attr-defined]
        factor_sum = torch.zeros_like(weights) if weighted and weights is not None else None
        own_sum, stacked_sum = torch.zeros_like(own_weight), torch.zeros_like(stacked)
        bias_sum, gain_sum, shift_sum = vector_sums = x.new_zeros(3, settings.width)
        context_gradient = x.new_empty(gradient.shape) if ctx.context else None  # type: ignore[attr-defined]
        count = len(frame.previous)
        room = _Room(min(count, BLOCK), stacked, x, backward=True)
        for begin in range(0, count, BLOCK):
            part = slice(begin, min(begin + BLOCK, count))
            statistics, parts, own = room.of(part)
            run_forward(settings, frame.block(part), inputs, factors, array_of(statistics))  # made again, not kept
            gather_own(inputs.x, frame.previous[part], array_of(own))
            finish_backward(
                array_of(gradient[part]),
                array_of(mixed[part]),
                norm,
                array_of(deviations[part]),
                frame.scales_of(part),
                array_of(parts),
                array_of(vector_sums),
            )
            before = parts[:, : settings.width]  # [S, D] gradient of the sum before the norm
            own_sum.addmm_(before.T, own)
            stacked_sum.addmm_(parts.T, statistics)
            if context_gradient is not None:
                context_gradient[part] = before
            statistic_gradient = torch.mm(parts, stacked, out=room.gradient[: len(parts)])
            run_backward(
                settings,
                frame.block(part),
                inputs,
                factors,
                array_of(statistics),
                array_of(statistic_gradient),
                sums,
                optional_array(factor_sum),
            )
            own_gradient = torch.mm(before, own_weight, out=own)
            if settings.residual:
                own_gradient += gradient[part]
            scatter_own(array_of(own_gradient), frame.previous[part], sums.x)
        weight_sum = _unblock(settings, own_sum, stacked_sum)
        norm_sums = (None, None) if norm is None else (gain_sum, shift_sum)
        return None, *found, factor_sum, context_gradient, weight_sum, bias_sum, *norm_sums
