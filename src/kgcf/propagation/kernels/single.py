"""Sum, mean, max and min in numba: one statistic of the messages at every slot, and its gradient."""

import numpy as np

from kgcf.machine.compiled import kernel
from kgcf.propagation.kernels.messages import (
    Kind,
    Tables,
    Wiring,
    add_own,
    add_partner,
    message,
    push_to_relation,
    push_to_state,
)
from kgcf.propagation.kernels.simd import Floats, larger, load_as, multiply_add, splat_as, store, total, where_equal


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
    x, span = inputs.x, kind.span
    width = x.shape[1]
    lanes = span.size // x.itemsize
    zero = splat_as(span, x, 0.0)
    for b in range(len(wiring.heads)):
        base = wiring.vector_rows[b] * width
        begin_slot, end_slot = max(wiring.slot_offsets[b], wiring.first), min(wiring.slot_offsets[b + 1], wiring.last)
        for slot in range(begin_slot, end_slot):
            begin, end = wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]
            share = splat_as(span, x, 1.0 / (wiring.degrees[slot] + 1) if averaged else 1.0)
            each = splat_as(span, x, wiring.reached[slot] / max(end - begin, 1))  # a drawn message stands for so many
            for c in range(0, width, lanes):
                boundary = load_as(span, inputs.queries, b * width + c) if slot == wiring.heads[b] else zero
                added = zero
                for e in range(begin, end):
                    i = np.int64(wiring.sources[e]) * width
                    m = message(kind, inputs, i, base + np.int64(wiring.relations[e]) * width, c)
                    if weights is not None:
                        m = m * splat_as(span, x, weights[e])
                    added = added + m
                store(statistics, (slot - wiring.first) * width + c, multiply_add(added, each, boundary) * share)


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
    x, span = inputs.x, kind.span
    width = x.shape[1]
    lanes = span.size // x.itemsize
    zero = splat_as(span, x, 0.0)
    for b in range(len(wiring.heads)):
        base = wiring.vector_rows[b] * width
        begin_slot, end_slot = max(wiring.slot_offsets[b], wiring.first), min(wiring.slot_offsets[b + 1], wiring.last)
        for slot in range(begin_slot, end_slot):
            begin, end = wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]
            share = splat_as(span, x, 1.0 / (wiring.degrees[slot] + 1) if averaged else 1.0)
            each = splat_as(span, x, wiring.reached[slot] / max(end - begin, 1))  # a drawn message stands for so many
            for c in range(0, width, lanes):
                back = load_as(span, gradient, (slot - wiring.first) * width + c) * share
                if slot == wiring.heads[b]:
                    store(sums.queries, b * width + c, load_as(span, sums.queries, b * width + c) + back)
                back = back * each
                e = begin
                while e < end:
                    relation = wiring.relations[e]
                    j = base + np.int64(relation) * width
                    to_own, to_partner = zero, zero
                    while e < end and wiring.relations[e] == relation:
                        i = np.int64(wiring.sources[e]) * width
                        single = back
                        if weight_gradient is not None:
                            weight_gradient[e] += total(back * message(kind, inputs, i, j, c))
                        if weights is not None:
                            single = back * splat_as(span, x, weights[e])
                        push_to_state(kind, single, inputs, sums, i, j, c)
                        to_own = add_own(kind, to_own, single, inputs, i, c)
                        to_partner = add_partner(kind, to_partner, single, inputs, i, c)
                        e += 1
                    push_to_relation(kind, sums, j, c, to_own, to_partner)


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
    x, span = inputs.x, kind.span
    width = x.shape[1]
    lanes = span.size // x.itemsize
    zero, side = splat_as(span, x, 0.0), splat_as(span, x, sign)
    for b in range(len(wiring.heads)):
        base = wiring.vector_rows[b] * width
        begin_slot, end_slot = max(wiring.slot_offsets[b], wiring.first), min(wiring.slot_offsets[b + 1], wiring.last)
        for slot in range(begin_slot, end_slot):
            begin, end = wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]
            for c in range(0, width, lanes):
                most = load_as(span, inputs.queries, b * width + c) * side if slot == wiring.heads[b] else zero
                if wiring.reached[slot] < wiring.degrees[slot]:  # somebody unreached sends a zero
                    most = larger(most, zero)
                for e in range(begin, end):
                    i = np.int64(wiring.sources[e]) * width
                    m = message(kind, inputs, i, base + np.int64(wiring.relations[e]) * width, c)
                    if weights is not None:
                        m = m * splat_as(span, x, weights[e])
                    most = larger(m * side, most)
                store(statistics, (slot - wiring.first) * width + c, most * side)


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
    x, span = inputs.x, kind.span
    width = x.shape[1]
    lanes = span.size // x.itemsize
    zero = splat_as(span, x, 0.0)
    for b in range(len(wiring.heads)):
        base = wiring.vector_rows[b] * width
        begin_slot, end_slot = max(wiring.slot_offsets[b], wiring.first), min(wiring.slot_offsets[b + 1], wiring.last)
        for slot in range(begin_slot, end_slot):
            at_head = slot == wiring.heads[b]
            for c in range(0, width, lanes):
                row = (slot - wiring.first) * width + c
                most, whole = load_as(span, statistics, row), load_as(span, gradient, row)
                boundary = load_as(span, inputs.queries, b * width + c) if at_head else zero
                to_boundary = where_equal(boundary, most, whole)
                if at_head:
                    store(sums.queries, b * width + c, load_as(span, sums.queries, b * width + c) + to_boundary)
                whole = whole - to_boundary
                e, end = wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]
                while e < end:
                    relation = wiring.relations[e]
                    j = base + np.int64(relation) * width
                    to_own, to_partner = zero, zero
                    while e < end and wiring.relations[e] == relation:
                        i = np.int64(wiring.sources[e]) * width
                        plain = message(kind, inputs, i, j, c)
                        m = plain
                        if weights is not None:
                            m = m * splat_as(span, x, weights[e])
                        back = where_equal(m, most, whole)
                        if weight_gradient is not None:
                            weight_gradient[e] += total(back * plain)
                        if weights is not None:
                            back = back * splat_as(span, x, weights[e])
                        push_to_state(kind, back, inputs, sums, i, j, c)
                        to_own = add_own(kind, to_own, back, inputs, i, c)
                        to_partner = add_partner(kind, to_partner, back, inputs, i, c)
                        e += 1
                    push_to_relation(kind, sums, j, c, to_own, to_partner)
