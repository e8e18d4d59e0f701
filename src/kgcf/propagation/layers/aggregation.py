"""Messages into statistics as one differentiable operation, by the numba kernels."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional

from kgcf.propagation.kernels.messages import Tables, Wiring, kind_of
from kgcf.propagation.kernels.pna import pna_backward, pna_forward
from kgcf.propagation.kernels.simd import VECTOR_BYTES, Floats
from kgcf.propagation.kernels.single import extreme_backward, extreme_forward, sum_backward, sum_forward
from kgcf.propagation.layers.encoder import EncoderSettings
from kgcf.propagation.plan.planner import LayerPlan


def wire(layer: LayerPlan, vector_rows: NDArray[np.int64]) -> Wiring:
    """A layer of a plan as the kernels take it, with the rows [B] at which the queries' relation vectors begin."""
    return Wiring(
        layer.slot_offsets,
        layer.degrees,
        layer.reached,
        layer.edge_offsets,
        layer.sources,
        layer.relations,
        layer.heads,
        vector_rows,
        0,
        len(layer.degrees),
    )


def aggregate(
    settings: EncoderSettings, wiring: Wiring, x: Tensor, relations: Tensor, q: Tensor, weights: Tensor | None
) -> Tensor:
    """[S, A, D] statistics of the messages, from states x [P, D], relation vectors [T, D], queries [B, D].

    `weights` [M] multiply the messages. Widths that do not fill the vectors of the kernels are padded with
    zero channels; RotatE's two halves each.
    """
    halves = 2 if settings.message == "rotate" else 1
    lanes = VECTOR_BYTES // x.element_size() * halves
    missing = -settings.width % lanes
    if missing:
        x, relations, q = (_pad(tensor, halves, missing // halves) for tensor in (x, relations, q))
    result: Tensor = _Aggregation.apply(settings, wiring, x, relations, q, weights)  # type: ignore[no-untyped-call]
    if missing:
        halved = result.view(*result.shape[:2], halves, result.shape[2] // halves)
        result = halved[..., : settings.width // halves].flatten(2)  # [S, A, 2, D/2] → [S, A, D]
    return result


def _pad(tensor: Tensor, halves: int, missing: int) -> Tensor:
    halved = tensor.view(len(tensor), halves, tensor.shape[1] // halves)
    return functional.pad(halved, (0, missing)).flatten(1)  # [·, 2, D/2] → [·, D]


def run_forward(
    settings: EncoderSettings, wiring: Wiring, inputs: Tables, weights: Floats | None, statistics: Floats
) -> None:
    """Fill the statistics [·, A, D] of the slots that the wiring says."""
    kind, how = kind_of(settings.message, inputs.x), settings.aggregate
    match how:
        case "pna":
            pna_forward(kind, wiring, inputs, weights, None, statistics)
        case "sum" | "mean":
            sum_forward(kind, wiring, inputs, weights, how == "mean", statistics)
        case "max" | "min":
            extreme_forward(kind, wiring, inputs, weights, 1.0 if how == "max" else -1.0, statistics)


def run_backward(
    settings: EncoderSettings,
    wiring: Wiring,
    inputs: Tables,
    weights: Floats | None,
    statistics: Floats,
    gradient: Floats,
    sums: Tables,
    factors: Floats | None,
) -> None:
    """Add the gradients of states, relation vectors and queries to `sums`, those of the weights to `factors`."""
    kind, how = kind_of(settings.message, inputs.x), settings.aggregate
    match how:
        case "pna":
            pna_backward(kind, wiring, inputs, weights, statistics, gradient, sums, factors)
        case "sum" | "mean":
            sum_backward(kind, wiring, inputs, weights, how == "mean", gradient, sums, factors)
        case "max" | "min":
            extreme_backward(kind, wiring, inputs, weights, statistics, gradient, sums, factors)


class _Aggregation(torch.autograd.Function):
    """The kernels between torch and numpy; both see the same memory."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        settings: EncoderSettings,
        wiring: Wiring,
        x: Tensor,
        relations: Tensor,
        q: Tensor,
        weights: Tensor | None,
    ) -> Tensor:
        inputs = Tables(array_of(x), array_of(relations), array_of(q))
        statistics = x.new_empty(len(wiring.degrees), settings.statistics, x.shape[1])
        run_forward(settings, wiring, inputs, optional_array(weights), array_of(statistics))
        ctx.settings, ctx.wiring = settings, wiring  # type: ignore[attr-defined]
        ctx.save_for_backward(x, relations, q, weights, statistics)  # type: ignore[arg-type]
        return statistics

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, relations, q, weights, statistics = ctx.saved_tensors  # type: ignore[attr-defined]
        found = [torch.zeros_like(tensor) for tensor in (x, relations, q)]
        weighted = ctx.needs_input_grad[5]  # type: ignore[attr-defined]
        weight_sum = torch.zeros_like(weights) if weighted and weights is not None else None
        run_backward(
            ctx.settings,  # type: ignore[attr-defined]
            ctx.wiring,  # type: ignore[attr-defined]
            Tables(array_of(x), array_of(relations), array_of(q)),
            optional_array(weights),
            array_of(statistics),
            array_of(gradients[0]),
            Tables(*(array_of(tensor) for tensor in found)),
            optional_array(weight_sum),
        )
        return None, None, *found, weight_sum


def array_of(tensor: Tensor) -> Floats:
    """The tensor's own memory as an array, contiguous."""
    array: Floats = tensor.detach().contiguous().numpy()
    return array


def optional_array(tensor: Tensor | None) -> Floats | None:
    """`array_of`, or nothing of nothing."""
    return None if tensor is None else array_of(tensor)
