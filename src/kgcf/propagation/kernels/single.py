"""Sum, mean, max and min in numba: one statistic of the messages at every slot, and its gradient."""

import numpy as np

from kgcf.machine.compiled import kernel
from kgcf.propagation.kernels.messages import Kind, Tables, Wiring, message, push_back
from kgcf.propagation.kernels.simd import (
    VECTOR_BYTES,
    Floats,
    larger,
    load,
    splat,
    store,
    total,
    where_equal,
)


@kernel
def sum_forward(
    kind: Kind,
    wiring: Wiring,
    inputs: Tables,
    weights: Floats | None,  # [M]
    averaged: bool,
    statistics: Floats,  # [S, 1, D] filled
) -> None:
    """The sum of the messages and the boundary at every slot, over degree + 1 if averaged."""
    x = inputs.x
    width = x.shape[1]
    lanes = VECTOR_BYTES // x.itemsize
    for b in range(len(wiring.heads)):
        base = b * wiring.relation_stride * width
        for slot in range(wiring.slot_offsets[b], wiring.slot_offsets[b + 1]):
            share = splat(x, 1.0 / (wiring.degrees[slot] + 1) if averaged else 1.0)
            for c in range(0, width, lanes):
                added = load(inputs.queries, b * width + c) if slot == wiring.heads[b] else splat(x, 0.0)
                for e in range(wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]):
                    i = np.int64(wiring.sources[e]) * width
                    m = message(kind, inputs, i, base + np.int64(wiring.relations[e]) * width, c)
                    if weights is not None:
                        m = m * splat(x, weights[e])
                    added = added + m
                store(statistics, slot * width + c, added * share)


@kernel
def sum_backward(
    kind: Kind,
    wiring: Wiring,
    inputs: Tables,
    weights: Floats | None,
    averaged: bool,
    gradient: Floats,  # [S, 1, D]
    sums: Tables,  # gradients of the inputs, added to
    weight_gradient: Floats | None,
) -> None:
    """Gradients of the sum or mean; every message gets the same."""
    x = inputs.x
    width = x.shape[1]
    lanes = VECTOR_BYTES // x.itemsize
    for b in range(len(wiring.heads)):
        base = b * wiring.relation_stride * width
        for slot in range(wiring.slot_offsets[b], wiring.slot_offsets[b + 1]):
            share = splat(x, 1.0 / (wiring.degrees[slot] + 1) if averaged else 1.0)
            for c in range(0, width, lanes):
                each = load(gradient, slot * width + c) * share
                if slot == wiring.heads[b]:
                    store(sums.queries, b * width + c, load(sums.queries, b * width + c) + each)
                for e in range(wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]):
                    i = np.int64(wiring.sources[e]) * width
                    j = base + np.int64(wiring.relations[e]) * width
                    back = each
                    if weight_gradient is not None:
                        weight_gradient[e] += total(each * message(kind, inputs, i, j, c))
                    if weights is not None:
                        back = back * splat(x, weights[e])
                    push_back(kind, back, inputs, sums, i, j, c)


@kernel
def extreme_forward(
    kind: Kind,
    wiring: Wiring,
    inputs: Tables,
    weights: Floats | None,
    sign: float,  # 1: maximum, −1: minimum
    statistics: Floats,  # [S, 1, D] filled
) -> None:
    """The largest (smallest) of the messages and the boundary at every slot."""
    x = inputs.x
    width = x.shape[1]
    lanes = VECTOR_BYTES // x.itemsize
    zero, side = splat(x, 0.0), splat(x, sign)
    for b in range(len(wiring.heads)):
        base = b * wiring.relation_stride * width
        for slot in range(wiring.slot_offsets[b], wiring.slot_offsets[b + 1]):
            begin, end = wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]
            for c in range(0, width, lanes):
                most = load(inputs.queries, b * width + c) * side if slot == wiring.heads[b] else zero
                if end - begin < wiring.degrees[slot]:  # somebody unreached sends a zero
                    most = larger(most, zero)
                for e in range(begin, end):
                    i = np.int64(wiring.sources[e]) * width
                    m = message(kind, inputs, i, base + np.int64(wiring.relations[e]) * width, c)
                    if weights is not None:
                        m = m * splat(x, weights[e])
                    most = larger(m * side, most)
                store(statistics, slot * width + c, most * side)


@kernel
def extreme_backward(
    kind: Kind,
    wiring: Wiring,
    inputs: Tables,
    weights: Floats | None,
    statistics: Floats,  # [S, 1, D] of the forward pass
    gradient: Floats,  # [S, 1, D]
    sums: Tables,  # gradients of the inputs, added to
    weight_gradient: Floats | None,
) -> None:
    """Gradients of the maximum or minimum: to the boundary if that equals it, else to every message that does."""
    x = inputs.x
    width = x.shape[1]
    lanes = VECTOR_BYTES // x.itemsize
    zero = splat(x, 0.0)
    for b in range(len(wiring.heads)):
        base = b * wiring.relation_stride * width
        for slot in range(wiring.slot_offsets[b], wiring.slot_offsets[b + 1]):
            at_head = slot == wiring.heads[b]
            for c in range(0, width, lanes):
                most, whole = load(statistics, slot * width + c), load(gradient, slot * width + c)
                boundary = load(inputs.queries, b * width + c) if at_head else zero
                to_boundary = where_equal(boundary, most, whole)
                if at_head:
                    store(sums.queries, b * width + c, load(sums.queries, b * width + c) + to_boundary)
                whole = whole - to_boundary
                for e in range(wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]):
                    i = np.int64(wiring.sources[e]) * width
                    j = base + np.int64(wiring.relations[e]) * width
                    plain = message(kind, inputs, i, j, c)
                    m = plain
                    if weights is not None:
                        m = m * splat(x, weights[e])
                    back = where_equal(m, most, whole)
                    if weight_gradient is not None:
                        weight_gradient[e] += total(back * plain)
                    if weights is not None:
                        back = back * splat(x, weights[e])
                    push_back(kind, back, inputs, sums, i, j, c)
