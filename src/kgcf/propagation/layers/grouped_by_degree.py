"""One PNA layer without gradients, for ranking: entities of equal degree share one matrix.

The update multiplies the statistics f by W₁ + s W₂ + W₃ / s, where s depends on the degree alone if all queries
see the same graph. Slots are placed by degree, and every degree that occurs often is one product with the
matrix of its s: a third of the arithmetic of three products.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.machine.compiled import kernel
from kgcf.propagation.kernels.messages import Tables, kind_of
from kgcf.propagation.kernels.pna import pna_forward
from kgcf.propagation.kernels.update import Norm, add_parts, finish_forward, gather_own
from kgcf.propagation.layers.aggregation import array_of, optional_array, wire
from kgcf.propagation.layers.encoder import SMALLEST_SCALE, EncoderLayer
from kgcf.propagation.layers.fused import can_fuse, split_weight
from kgcf.propagation.layers.recycling import recycler
from kgcf.propagation.plan.planner import LayerPlan, Plan

SMALLEST_GROUP = 48  # slots of one degree that are worth a product of their own


def can_group(layer: EncoderLayer, plan: Plan, x: Tensor) -> bool:
    """Whether no gradient is wanted and one scale belongs to one degree."""
    means = plan.mean_log_degrees
    ready = not torch.is_grad_enabled() and layer.settings.aggregate == "pna" and can_fuse(layer.settings, x)
    return ready and len(means) > 0 and bool((means == means[0]).all())


def advance_by_degree(
    layer: EncoderLayer,
    step: LayerPlan,
    x: Tensor,
    vectors: Tensor,
    vector_rows: NDArray[np.int64],
    q: Tensor,
    weights: Tensor | None,
    context: Tensor | None,
    smallest: int = SMALLEST_GROUP,
) -> Tensor:
    """[S, D] the states after one layer, from those before x [P, D], relation vectors [T, D], queries [B, D]."""
    settings, norm = layer.settings, layer.layer_norm
    positions, offsets, examples = _group_by_degree(step.degrees, smallest)
    statistics = recycler.empty(len(positions), settings.statistics * settings.width, x)
    inputs = Tables(array_of(x), array_of(vectors), array_of(q))
    wiring = wire(step, vector_rows)
    kind = kind_of(settings.message, inputs.x)
    pna_forward(kind, wiring, inputs, optional_array(weights), positions, array_of(statistics))
    own_weight, stacked = split_weight(settings, layer.linear.weight)
    scales = torch.from_numpy(step.scales).to(x)
    parts = x.new_empty(len(positions), settings.width)
    _multiply_groups(statistics, stacked, scales[torch.from_numpy(examples)], offsets, parts)
    rest = slice(int(offsets[-2]), None)  # slots of rare degrees
    order = np.empty(len(positions), np.int64)
    order[positions] = np.arange(len(positions))
    column = scales[torch.from_numpy(order[rest])].unsqueeze(1)
    plain, scaled, inverse = (
        (statistics[rest] @ stacked.T).view(-1, 3, settings.width).unbind(1)
    )  # [·, 3·D] → [·, 3, D]
    parts[rest] = plain + column * scaled + inverse / column.clamp(min=SMALLEST_SCALE)
    own = x.new_empty(len(positions), settings.width)
    gather_own(inputs.x, step.previous, array_of(own))
    mixed, out = own @ own_weight.T, torch.empty_like(own)
    add_parts(array_of(mixed), array_of(parts), None, array_of(layer.linear.bias), optional_array(context), positions)
    kernel_norm = None if norm is None else Norm(array_of(norm.weight), array_of(norm.bias), norm.eps)
    residual = array_of(own) if settings.residual else None
    finish_forward(array_of(mixed), kernel_norm, residual, array_of(x.new_empty(len(own))), array_of(out))
    return out


def _multiply_groups(
    statistics: Tensor, stacked: Tensor, scales: Tensor, offsets: NDArray[np.int64], parts: Tensor
) -> None:
    """parts [S, D] ← statistics [S, A·D] times the matrix of their group's scale [G]."""
    width, columns = parts.shape[1], statistics.shape[1]
    factors = torch.stack([torch.ones_like(scales), scales, 1 / scales.clamp(min=SMALLEST_SCALE)], dim=1)  # [G, 3]
    matrices = (factors @ stacked.view(3, -1)).view(-1, width, columns)  # [G, D·A·D] → [G, D, A·D]
    for group, matrix in enumerate(matrices):
        begin, end = offsets[group], offsets[group + 1]
        torch.mm(statistics[begin:end], matrix.T, out=parts[begin:end])


@kernel
def _group_by_degree(
    degrees: NDArray[np.int32], smallest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Places [S] of slots, those of one frequent degree side by side; where the G groups begin; a slot of each.

    Offsets have G + 2 entries: the slots of rare degrees come last, from offsets[G] to offsets[G + 1].
    """
    counts = np.zeros((degrees.max() if len(degrees) else 0) + 1, np.int64)
    for degree in degrees:
        counts[degree] += 1
    offsets = np.zeros(np.sum(counts >= smallest) + 2, np.int64)
    cursor = np.full(len(counts), -1, np.int64)  # where the next slot of a degree goes; −1: a rare degree
    group = 0
    for degree in range(len(counts)):
        if counts[degree] >= smallest:
            cursor[degree] = offsets[group]
            offsets[group + 1] = offsets[group] + counts[degree]
            group += 1
    examples = np.zeros(group, np.int64)
    positions = np.empty(len(degrees), np.int64)
    rare = offsets[group]
    for slot in range(len(degrees)):
        if cursor[degrees[slot]] < 0:
            positions[slot] = rare
            rare += 1
        else:
            positions[slot] = cursor[degrees[slot]]
            cursor[degrees[slot]] += 1
    offsets[group + 1] = len(degrees)
    for slot in range(len(degrees)):
        found = np.searchsorted(offsets[: group + 1], positions[slot], "right") - 1
        if found < group:
            examples[found] = slot
    return positions, offsets, examples
