"""Reductions over edges that are sorted by target, in plain torch, with our own gradient of max and min."""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx


@dataclass(frozen=True, eq=False)
class Segments:
    """E edges sorted by target: those of target v lie at offsets[v] … offsets[v + 1] − 1."""

    offsets: Tensor  # [N + 1]
    targets: Tensor  # [E]
    lengths: Tensor  # [N]
    empty: Tensor | None  # [·] targets without an edge; None: there are none
    selection: Tensor | None  # [N, E] the ones of every row's edges, a compressed matrix; None off the CPU

    @classmethod
    def build(cls, offsets: Tensor, dtype: torch.dtype) -> "Segments":
        """Index the segments, for values of a dtype on the device of the offsets."""
        lengths = offsets.diff()
        targets = torch.repeat_interleave(lengths)
        empty = (lengths == 0).nonzero().squeeze(1)
        selection = None
        if offsets.device.type == "cpu":
            columns = torch.arange(len(targets))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
                ones = torch.ones(len(targets), dtype=dtype)
                shape = (len(lengths), len(targets))
                selection = torch.sparse_csr_tensor(offsets, columns, ones, shape, check_invariants=True)
        return cls(offsets, targets, lengths, empty if len(empty) else None, selection)


def segment_sum(values: Tensor, segments: Segments) -> Tensor:
    """[N, …] sums of the values [E, …] of every segment."""
    return values.new_zeros(len(segments.lengths), *values.shape[1:]).index_add(0, segments.targets, values)


def segment_extreme(values: Tensor, boundary: Tensor, segments: Segments, largest: bool) -> Tensor:
    """[N, …] the largest (or smallest) of the boundary [N, …] and the values [E, …] of every segment.

    Gradient (docs/engine.md): a result equal to the boundary belongs to the boundary alone; otherwise every value
    that equals the result gets the full gradient.
    """
    result: Tensor = _SegmentExtreme.apply(values, boundary, segments, largest)  # type: ignore[no-untyped-call]
    return result


class _SegmentExtreme(torch.autograd.Function):
    """Max and min with the boundary first among ties."""

    @staticmethod
    def forward(ctx: FunctionCtx, values: Tensor, boundary: Tensor, segments: Segments, largest: bool) -> Tensor:
        inner = _reduce(values.flatten(1), segments, largest).view(boundary.shape)
        result = torch.maximum(inner, boundary) if largest else torch.minimum(inner, boundary)
        if segments.empty is not None:
            result[segments.empty] = boundary[segments.empty]
        ctx.save_for_backward(values, boundary, result, segments.targets)
        return result

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        values, boundary, result, targets = ctx.saved_tensors  # type: ignore[attr-defined]
        (gradient,) = gradients
        owned = result == boundary
        to_values = gradient.masked_fill(owned, 0).index_select(0, targets)
        to_values.mul_(values == result.index_select(0, targets))
        return to_values, gradient.masked_fill(~owned, 0), None, None


def _reduce(values: Tensor, segments: Segments, largest: bool) -> Tensor:
    """[N, C] the extremes of the segments of values [E, C]; anything where a segment is empty."""
    if segments.selection is not None:
        # an order of magnitude faster than torch.segment_reduce on a CPU
        fast: Tensor = torch.sparse.mm(segments.selection, values.contiguous(), "amax" if largest else "amin")
        return fast
    return torch.segment_reduce(values, "max" if largest else "min", offsets=segments.offsets, axis=0, unsafe=True)
