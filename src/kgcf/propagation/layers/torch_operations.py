"""The same plan with plain torch operations (gather, segment reductions), for devices other than the CPU."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.propagation.dense.layer import make_messages
from kgcf.propagation.layers.encoder import SMALLEST_VARIANCE, EncoderSettings
from kgcf.propagation.layers.segments import Segments, segment_extreme, segment_sum
from kgcf.propagation.plan.planner import LayerPlan

TORCH_ROWS = 5  # rows of width D that an edge keeps for the backward pass: what was sent, along what, the messages


def aggregate_with_torch(
    settings: EncoderSettings,
    step: LayerPlan,
    vector_rows: NDArray[np.int64],
    x: Tensor,
    relations: Tensor,
    q: Tensor,
    weights: Tensor | None,
) -> Tensor:
    """[S, A, D] statistics of the messages, from states x [P, D], relation vectors [T, D], queries [B, D]."""
    device = x.device
    segments = Segments.build(torch.from_numpy(step.edge_offsets).to(device), x.dtype)
    queries = torch.from_numpy(step.queries).to(device)
    vectors = torch.from_numpy(step.relations).to(device)
    vectors = vectors + torch.from_numpy(vector_rows).to(device)[queries[segments.targets]]
    sources = torch.from_numpy(step.sources).to(device)
    messages = make_messages(settings.message, x[sources], relations[vectors])  # [M, D]
    if weights is not None:
        messages = messages * weights.unsqueeze(1)
    heads = torch.from_numpy(step.heads).to(device)
    present = heads >= 0
    boundary = q.new_zeros(len(queries), q.shape[1]).index_put((heads[present],), q[present])  # [S, D]
    degrees = torch.from_numpy(step.degrees).to(device)
    parts = []
    reached = torch.from_numpy(step.reached).to(device)
    each = (reached / segments.lengths.clamp(min=1)).to(q).unsqueeze(1)  # a drawn message stands for so many
    if settings.aggregate in ("pna", "sum", "mean"):
        added = segment_sum(messages, segments) * each + boundary
        parts.append(added if settings.aggregate == "sum" else added / (degrees + 1).unsqueeze(1))
    if settings.aggregate in ("pna", "max", "min"):
        silence = (reached < degrees).unsqueeze(1)  # somebody unreached sends a zero
        for largest in [True, False] if settings.aggregate == "pna" else [settings.aggregate == "max"]:
            extreme = segment_extreme(messages, boundary, segments, largest)
            bounded = extreme.clamp(min=0) if largest else extreme.clamp(max=0)
            parts.append(torch.where(silence, bounded, extreme))
    if settings.aggregate == "pna":
        square = (segment_sum(messages.square(), segments) * each + boundary.square()) / (degrees + 1).unsqueeze(1)
        parts.append((square - parts[0].square()).clamp(min=SMALLEST_VARIANCE).sqrt())
    return torch.stack(parts, dim=1)
