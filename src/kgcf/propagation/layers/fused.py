"""One layer as one differentiable operation: kernels around matrix products, and a backward pass by hand.

The same mathematics as `aggregate` followed by `EncoderLayer.update`, which the tests compare it with, without
the many small operations that autograd would record.
"""

from dataclasses import dataclass

import numpy as np
import torch
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
from kgcf.propagation.plan.planner import LayerPlan


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
        inputs = Tables(array_of(x), array_of(vectors), array_of(q))
        statistics = torch.from_numpy(run_forward(settings, frame.wiring, inputs, optional_array(weights))).flatten(1)
        own = x.new_empty(len(frame.previous), settings.width)
        gather_own(inputs.x, frame.previous, array_of(own))
        own_weight, stacked = split_weight(settings, weight)
        mixed, parts = own @ own_weight.T, statistics @ stacked.T  # [S, D], [S, C·D]
        norm = Norm(array_of(gain), array_of(shift), frame.epsilon) if gain is not None and shift is not None else None
        rest = array_of(own) if settings.residual else None
        deviations, out = x.new_empty(len(own)), torch.empty_like(own)
        add_parts(array_of(mixed), array_of(parts), frame.scales, array_of(bias), optional_array(context), None)
        finish_forward(array_of(mixed), norm, rest, array_of(deviations), array_of(out))
        ctx.frame, ctx.norm, ctx.context = frame, norm, context is not None  # type: ignore[attr-defined]
        ctx.save_for_backward(x, vectors, q, weights, weight, statistics, own, mixed, deviations)  # type: ignore[arg-type]
        return out

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        frame: _Frame = ctx.frame  # type: ignore[attr-defined]
        norm: Norm | None = ctx.norm  # type: ignore[attr-defined]
        settings = frame.settings
        x, vectors, q, weights, weight, statistics, own, mixed, deviations = ctx.saved_tensors  # type: ignore[attr-defined]
        gradient = gradients[0].contiguous()
        own_weight, stacked = split_weight(settings, weight)
        parts = x.new_empty(len(own), len(stacked))  # [S, C·D]
        bias_sum, gain_sum, shift_sum = sums = x.new_zeros(3, settings.width)
        finish_backward(
            array_of(gradient),
            array_of(mixed),
            norm,
            array_of(deviations),
            frame.scales,
            array_of(parts),
            array_of(sums),
        )
        before = parts[:, : settings.width]  # [S, D] gradient of the sum before the norm
        weight_sum = _unblock(settings, before.T @ own, parts.T @ statistics)
        inputs = Tables(array_of(x), array_of(vectors), array_of(q))
        found, factor_sum = run_backward(
            settings,
            frame.wiring,
            inputs,
            optional_array(weights),
            array_of(statistics),
            array_of(parts @ stacked),
            ctx.needs_input_grad[4],  # type: ignore[attr-defined]
        )
        own_gradient = before @ own_weight
        if settings.residual:
            own_gradient += gradient
        scatter_own(array_of(own_gradient), frame.previous, array_of(found[0]))
        context_gradient = before.contiguous() if ctx.context else None  # type: ignore[attr-defined]
        norm_sums = (None, None) if norm is None else (gain_sum, shift_sum)
        return None, *found, factor_sum, context_gradient, weight_sum, bias_sum, *norm_sums
