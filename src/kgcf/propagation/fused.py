"""One layer as one differentiable operation: kernels around matrix products, and a backward pass by hand.

The same mathematics as `aggregate` followed by `EncoderLayer.update`, which the tests compare it with, without
the many small operations that autograd would record.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from kgcf.encoder import SMALLEST_SCALE, EncoderLayer, EncoderSettings
from kgcf.propagation.aggregation import array_of, run_backward, run_forward, wire
from kgcf.propagation.messages import Wiring
from kgcf.propagation.plan import LayerPlan
from kgcf.propagation.simd import VECTOR_BYTES, Floats
from kgcf.propagation.update_kernels import finish_backward, finish_forward, gather_own, scatter_own


def can_fuse(settings: EncoderSettings, like: Tensor) -> bool:
    """Whether the width fills whole vectors, so that no padding is needed."""
    lanes = VECTOR_BYTES // like.element_size() * (2 if settings.message == "rotate" else 1)
    return settings.width % lanes == 0


def advance(
    layer: EncoderLayer,
    step: LayerPlan,
    x: Tensor,
    vectors: Tensor,
    relation_stride: int,
    q: Tensor,
    weights: Tensor | None,
    context: Tensor | None,
) -> Tensor:
    """[S, D] the states after one layer, from those before x [P, D], relation vectors [T, D], queries [B, D]."""
    norm = layer.layer_norm
    scales = step.scales.astype(array_of(x).dtype) if layer.settings.scalers > 1 else None
    frame = _Frame(
        layer.settings, wire(step, relation_stride), step.previous, scales, 0.0 if norm is None else norm.eps
    )
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


def _blocks(settings: EncoderSettings, weight: Tensor) -> tuple[Tensor, Tensor]:
    """W₀ [D, D] of the own state and the C blocks of the statistics, stacked [C·D, A·D]."""
    width, columns = settings.width, settings.width * settings.statistics
    blocks = weight[:, width:].view(width, settings.scalers, columns).transpose(0, 1)  # [D, C·A·D] → [C, D, A·D]
    return weight[:, :width], blocks.reshape(-1, columns)


def _unblock(settings: EncoderSettings, own: Tensor, stacked: Tensor) -> Tensor:
    """[D, (1 + C·A)·D] the inverse of `_blocks`."""
    width = settings.width
    blocks = stacked.view(settings.scalers, width, -1).transpose(0, 1).reshape(width, -1)  # [C, D, A·D] → [D, C·A·D]
    return torch.cat([own, blocks], dim=1)


def _optional(tensor: Tensor | None) -> Floats | None:
    return None if tensor is None else array_of(tensor)


class _Layer(torch.autograd.Function):
    """Aggregate, multiply, finish; and back."""

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
        statistics = torch.from_numpy(
            run_forward(settings, frame.wiring, array_of(x), array_of(vectors), array_of(q), _optional(weights))
        ).flatten(1)  # [S, A, D] → [S, A·D]
        own = x.new_empty(len(frame.previous), settings.width)
        gather_own(array_of(x), frame.previous, array_of(own))
        own_weight, stacked = _blocks(settings, weight)
        mixed, parts = own @ own_weight.T, statistics @ stacked.T  # [S, D], [S, C·D]
        deviations, out = x.new_empty(len(own)), torch.empty_like(own)
        finish_forward(
            array_of(mixed),
            array_of(parts),
            frame.scales,
            array_of(bias),
            _optional(context),
            _optional(gain),
            _optional(shift),
            frame.epsilon,
            array_of(own) if settings.residual else None,
            SMALLEST_SCALE,
            array_of(deviations),
            array_of(out),
        )
        ctx.frame = frame  # type: ignore[attr-defined]
        inputs = (x, vectors, q, weights, context, weight, gain, shift)
        ctx.save_for_backward(*inputs, statistics, own, mixed, deviations)  # type: ignore[arg-type]
        return out

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        frame: _Frame = ctx.frame  # type: ignore[attr-defined]
        settings = frame.settings
        x, vectors, q, weights, context, weight, gain, shift, *rest = ctx.saved_tensors  # type: ignore[attr-defined]
        statistics, own, mixed, deviations = rest
        gradient = gradients[0].contiguous()
        own_weight, stacked = _blocks(settings, weight)
        parts = x.new_empty(len(own), len(stacked))  # [S, C·D]
        sums = x.new_zeros(3, settings.width)
        finish_backward(
            array_of(gradient),
            array_of(mixed),
            frame.scales,
            _optional(gain),
            _optional(shift),
            array_of(deviations),
            SMALLEST_SCALE,
            array_of(parts),
            *array_of(sums),
        )
        before = parts[:, : settings.width]  # [S, D] gradient of the sum before the norm
        weight_gradient = _unblock(settings, before.T @ own, parts.T @ statistics)
        own_gradient = before @ own_weight
        if settings.residual:
            own_gradient += gradient
        totals = (x.new_zeros(x.shape), x.new_zeros(vectors.shape), x.new_zeros(q.shape))
        wanted = weights is not None and ctx.needs_input_grad[4]  # type: ignore[attr-defined]
        factor_gradient = x.new_zeros(weights.shape) if wanted else None
        run_backward(
            settings,
            frame.wiring,
            (array_of(x), array_of(vectors), array_of(q), _optional(weights)),
            array_of(statistics),
            array_of(parts @ stacked),
            (array_of(totals[0]), array_of(totals[1]), array_of(totals[2]), _optional(factor_gradient)),
        )
        scatter_own(array_of(own_gradient), frame.previous, array_of(totals[0]))
        bias_gradient, gain_gradient, shift_gradient = sums
        return (
            None,
            *totals,
            factor_gradient,
            None if context is None else before.contiguous(),
            weight_gradient,
            bias_gradient,
            None if gain is None else gain_gradient,
            None if shift is None else shift_gradient,
        )
