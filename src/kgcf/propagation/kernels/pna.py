"""PNA in numba: mean, max, min and standard deviation of the messages at every slot, and their gradients.

The rules are those of docs/engine.md, "What exact means". Messages are made on the fly and never stored;
the backward pass makes them again. One call runs on one thread without the interpreter lock; threads take different
queries, so that no two of them write the same row. The backward kernel is in one piece because its parts, taken out
as functions, made it 15 to 40 % slower.
"""

import numpy as np
from numpy.typing import NDArray

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
from kgcf.propagation.kernels.simd import (
    Floats,
    divide,
    larger,
    load_as,
    multiply_add,
    root,
    smaller,
    splat_as,
    store,
    total,
    where_equal,
    where_larger,
)

SMALLEST_VARIANCE = 1e-6


@kernel
def pna_forward(
    kind: Kind,
    wiring: Wiring,
    inputs: Tables,
    weights: Floats | None,  # [M] factors of the messages
    positions: NDArray[np.int64] | None,  # [S] the row of every slot in the statistics, where not its own
    statistics: Floats,  # [S, 4, D] filled: mean, max, min, std
) -> None:
    """Statistics of the messages at every slot."""
    x, span = inputs.x, kind.span
    width = x.shape[1]
    lanes = span.size // x.itemsize
    zero, floor = splat_as(span, x, 0.0), splat_as(span, x, SMALLEST_VARIANCE)
    for b in range(len(wiring.heads)):
        base = wiring.vector_rows[b] * width
        begin_slot, end_slot = max(wiring.slot_offsets[b], wiring.first), min(wiring.slot_offsets[b + 1], wiring.last)
        for slot in range(begin_slot, end_slot):
            begin, end = wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]
            reached, degree = wiring.reached[slot], wiring.degrees[slot]
            share = splat_as(span, x, 1.0 / (degree + 1))
            each = splat_as(span, x, reached / max(end - begin, 1))  # a drawn message stands for so many
            for c in range(0, width, lanes):
                boundary = load_as(span, inputs.queries, b * width + c) if slot == wiring.heads[b] else zero
                added, squared, most, least = zero, zero, boundary, boundary
                if reached < degree:  # somebody unreached sends a zero
                    most, least = larger(boundary, zero), smaller(boundary, zero)
                for e in range(begin, end):
                    i = np.int64(wiring.sources[e]) * width
                    m = message(kind, inputs, i, base + np.int64(wiring.relations[e]) * width, c)
                    if weights is not None:
                        m = m * splat_as(span, x, weights[e])
                    added = added + m
                    squared = multiply_add(m, m, squared)
                    most, least = larger(m, most), smaller(m, least)
                mean = multiply_add(added, each, boundary) * share
                square = multiply_add(squared, each, boundary * boundary) * share
                row = (slot - wiring.first) * 4 * width + c
                if positions is not None:
                    row = positions[slot] * 4 * width + c
                store(statistics, row, mean)
                store(statistics, row + width, most)
                store(statistics, row + 2 * width, least)
                store(statistics, row + 3 * width, root(larger(square - mean * mean, floor)))


@kernel
def pna_backward(
    kind: Kind,
    wiring: Wiring,
    inputs: Tables,
    weights: Floats | None,
    statistics: Floats,  # [S, 4, D] of the forward pass
    gradient: Floats,  # [S, 4, D] of the statistics
    sums: Tables,  # gradients of the inputs, added to
    weight_gradient: Floats | None,  # [M]
) -> None:
    """Gradients of states, relation vectors, boundary states and message factors from those of the statistics.

    A maximum equal to the boundary belongs to the boundary; otherwise every message equal to it gets all of it.
    """
    x, span = inputs.x, kind.span
    width = x.shape[1]
    lanes = span.size // x.itemsize
    zero = splat_as(span, x, 0.0)
    floor = root(splat_as(span, x, SMALLEST_VARIANCE))
    for b in range(len(wiring.heads)):
        base = wiring.vector_rows[b] * width
        begin_slot, end_slot = max(wiring.slot_offsets[b], wiring.first), min(wiring.slot_offsets[b + 1], wiring.last)
        for slot in range(begin_slot, end_slot):
            begin, end = wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]
            share = splat_as(span, x, 1.0 / (wiring.degrees[slot] + 1))
            each = splat_as(span, x, wiring.reached[slot] / max(end - begin, 1))
            at_head = slot == wiring.heads[b]
            for c in range(0, width, lanes):
                row = (slot - wiring.first) * 4 * width + c
                mean, spread = load_as(span, statistics, row), load_as(span, statistics, row + 3 * width)
                most, least = load_as(span, statistics, row + width), load_as(span, statistics, row + 2 * width)
                half = where_larger(spread, floor, load_as(span, gradient, row + 3 * width)) * share
                slope = divide(half, spread)  # twice the gradient of the sum of squares
                constant = load_as(span, gradient, row) * share - slope * mean
                from_most, from_least = load_as(span, gradient, row + width), load_as(span, gradient, row + 2 * width)
                boundary = load_as(span, inputs.queries, b * width + c) if at_head else zero
                to_most, to_least = where_equal(boundary, most, from_most), where_equal(boundary, least, from_least)
                if at_head:
                    own = constant + slope * boundary + to_most + to_least
                    store(sums.queries, b * width + c, load_as(span, sums.queries, b * width + c) + own)
                from_most, from_least = from_most - to_most, from_least - to_least
                constant, slope = constant * each, slope * each
                e = begin
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
                        back = multiply_add(slope, m, constant)
                        back = back + where_equal(m, most, from_most) + where_equal(m, least, from_least)
                        if weight_gradient is not None:
                            weight_gradient[e] += total(back * plain)
                        if weights is not None:
                            back = back * splat_as(span, x, weights[e])
                        push_to_state(kind, back, inputs, sums, i, j, c)
                        to_own = add_own(kind, to_own, back, inputs, i, c)
                        to_partner = add_partner(kind, to_partner, back, inputs, i, c)
                        e += 1
                    push_to_relation(kind, sums, j, c, to_own, to_partner)
