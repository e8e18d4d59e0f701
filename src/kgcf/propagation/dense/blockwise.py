"""One layer of the dense reference, a block of entities at a time, so that messages stay in the processor's cache.

Between forward and backward only the states are kept; a block's messages are made again for its gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from kgcf.propagation.layers.segments import Segments


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive entities and the edges that enter them."""

    entities: slice
    edges: slice
    segments: Segments
    sources: Tensor  # [edges]
    relations: Tensor  # [edges]


@dataclass(frozen=True, eq=False)
class LayerInputs:
    """What a layer reads that may have gradients, for all entities or for one block of them."""

    sent: Tensor  # [N, B, D] all states, or [C, B, D] those at the sources of a block's C edges
    own: Tensor  # [N, B, D]
    boundary: Tensor  # [N, B, D]
    vectors: Tensor  # [2R, B or 1, D] never cut
    coefficients: Tensor | None  # [2E, B]


# What a layer makes of a block: its number, its inputs, its next states [V, B, D].
Step = Callable[[Block, LayerInputs], Tensor]


def cut_blocks(offsets: Tensor, sources: Tensor, relations: Tensor, dtype: torch.dtype, size: int) -> list[Block]:
    """Blocks of at most `size` entities and, where one entity does not have more of them alone, `size` edges."""
    count, blocks, begin = len(offsets) - 1, [], 0
    positions = offsets.cpu()
    while begin < count:
        fitting = int(torch.searchsorted(positions, positions[begin] + size, right=True)) - 1
        end = min(max(fitting, begin + 1), begin + size, count)
        edges = slice(int(positions[begin]), int(positions[end]))
        segments = Segments.build(offsets[begin : end + 1] - offsets[begin], dtype)
        blocks.append(Block(slice(begin, end), edges, segments, sources[edges], relations[edges]))
        begin = end
    return blocks


def advance(
    blocks: list[Block],
    step: Step,
    states: Tensor,
    boundary: Tensor,
    vectors: Tensor,
    coefficients: Tensor | None,
    parameters: list[Tensor],
) -> Tensor:
    """[N, B, D] the next states of all entities; `parameters` are the tensors that the step itself reads."""
    result: Tensor = _Advance.apply(blocks, step, states, boundary, vectors, coefficients, *parameters)  # type: ignore[no-untyped-call]
    return result


class _Advance(torch.autograd.Function):
    """Blocks forward without a graph; backward makes each block's graph anew and uses it at once."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        blocks: list[Block],
        step: Step,
        states: Tensor,
        boundary: Tensor,
        vectors: Tensor,
        coefficients: Tensor | None,
        *parameters: Tensor,
    ) -> Tensor:
        ctx.rest = blocks, step, parameters  # type: ignore[attr-defined]
        ctx.save_for_backward(states, boundary, vectors, coefficients)  # type: ignore[arg-type]
        result = torch.empty_like(states)
        whole = LayerInputs(states, states, boundary, vectors, coefficients)
        for block in blocks:
            result[block.entities] = step(block, _cut(whole, block))
        return result

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        blocks, step, parameters = ctx.rest  # type: ignore[attr-defined]
        saved = states, boundary, vectors, coefficients = ctx.saved_tensors  # type: ignore[attr-defined]
        needed = ctx.needs_input_grad[2:]  # type: ignore[attr-defined]
        totals = [torch.zeros_like(t) if n else None for t, n in zip((*saved, *parameters), needed, strict=True)]
        whole = LayerInputs(states, states, boundary, vectors, coefficients)
        for block in blocks:
            with torch.enable_grad():
                part = _cut(whole, block, needed)
                result = step(block, part)
            leaves = [part.sent, part.own, part.boundary, part.vectors, part.coefficients, *parameters]
            wanted = [i for i, leaf in enumerate(leaves) if leaf is not None and leaf.requires_grad]
            given = gradients[0][block.entities]
            found = torch.autograd.grad(result, [leaves[i] for i in wanted], given, allow_unused=True)
            for i, gradient in zip(wanted, found, strict=True):
                total = totals[max(i - 1, 0)]
                if gradient is not None and total is not None:
                    _add(total, i, gradient, block)
        return None, None, *totals


def _add(total: Tensor, position: int, gradient: Tensor, block: Block) -> None:
    """Add a block's gradient where it belongs: at its sources, its entities, its edges, or everywhere."""
    if position == 0:
        total.index_add_(0, block.sources, gradient)
    elif position in (1, 2):
        total[block.entities] += gradient
    elif position == 4:
        total[block.edges] += gradient
    else:
        total += gradient


def _cut(whole: LayerInputs, block: Block, needed: tuple[bool, ...] = ()) -> LayerInputs:
    """The inputs of one block; with `needed`, new tensors that track gradients where these are needed."""
    cut = LayerInputs(
        whole.sent.index_select(0, block.sources),
        whole.own[block.entities],
        whole.boundary[block.entities],
        whole.vectors,
        None if whole.coefficients is None else whole.coefficients[block.edges],
    )
    if not needed:
        return cut
    states, boundary, vectors, coefficients = needed[:4]
    return LayerInputs(
        cut.sent.detach().requires_grad_(states),
        cut.own.detach().requires_grad_(states),
        cut.boundary.detach().requires_grad_(boundary),
        cut.vectors.detach().requires_grad_(vectors),
        None if cut.coefficients is None else cut.coefficients.detach().requires_grad_(coefficients),
    )
