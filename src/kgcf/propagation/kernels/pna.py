"""PNA in numba: mean, max, min and standard deviation of the messages at every slot, and their gradients.

The rules are those of docs/engine.md, "What exact means". Messages are made on the fly and never stored;
the backward pass makes them again. One call runs on one thread without the interpreter lock; threads take different
queries, so that no two of them write the same row. The backward kernel is in one piece because its parts, taken out
as functions, made it 15 to 40 % slower.
"""

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel
from kgcf.propagation.kernels.messages import Kind, Tables, Wiring, message, push_back
from kgcf.propagation.kernels.simd import (
    VECTOR_BYTES,
    Floats,
    divide,
    larger,
    load,
    root,
    smaller,
    splat,
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
    x = inputs.x
    width = x.shape[1]
    lanes = VECTOR_BYTES // x.itemsize
    zero, floor = splat(x, 0.0), splat(x, SMALLEST_VARIANCE)
    for b in range(len(wiring.heads)):
        base = b * wiring.relation_stride * width
        for slot in range(wiring.slot_offsets[b], wiring.slot_offsets[b + 1]):
            begin, end = wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]
            degree = wiring.degrees[slot]
            share = splat(x, 1.0 / (degree + 1))
            for c in range(0, width, lanes):
                boundary = load(inputs.queries, b * width + c) if slot == wiring.heads[b] else zero
                added, squared, most, least = boundary, boundary * boundary, boundary, boundary
                if end - begin < degree:  # somebody unreached sends a zero
                    most, least = larger(boundary, zero), smaller(boundary, zero)
                for e in range(begin, end):
                    i = np.int64(wiring.sources[e]) * width
                    m = message(kind, inputs, i, base + np.int64(wiring.relations[e]) * width, c)
                    if weights is not None:
                        m = m * splat(x, weights[e])
                    added = added + m
                    squared = squared + m * m
                    most, least = larger(m, most), smaller(m, least)
                mean = added * share
                row = slot * 4 * width + c
                if positions is not None:
                    row = positions[slot] * 4 * width + c
                store(statistics, row, mean)
                store(statistics, row + width, most)
                store(statistics, row + 2 * width, least)
                store(statistics, row + 3 * width, root(larger(squared * share - mean * mean, floor)))


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
    x = inputs.x
    width = x.shape[1]
    lanes = VECTOR_BYTES // x.itemsize
    zero = splat(x, 0.0)
    floor = root(splat(x, SMALLEST_VARIANCE))
    for b in range(len(wiring.heads)):
        base = b * wiring.relation_stride * width
        for slot in range(wiring.slot_offsets[b], wiring.slot_offsets[b + 1]):
            share = 1.0 / (wiring.degrees[slot] + 1)
            at_head = slot == wiring.heads[b]
            for c in range(0, width, lanes):
                row = slot * 4 * width + c
                mean, spread = load(statistics, row), load(statistics, row + 3 * width)
                most, least = load(statistics, row + width), load(statistics, row + 2 * width)
                half = where_larger(spread, floor, load(gradient, row + 3 * width)) * splat(x, share)
                slope = divide(half, spread)  # twice the gradient of the sum of squares
                constant = load(gradient, row) * splat(x, share) - slope * mean
                from_most, from_least = load(gradient, row + width), load(gradient, row + 2 * width)
                boundary = load(inputs.queries, b * width + c) if at_head else zero
                to_most, to_least = where_equal(boundary, most, from_most), where_equal(boundary, least, from_least)
                if at_head:
                    own = constant + slope * boundary + to_most + to_least
                    store(sums.queries, b * width + c, load(sums.queries, b * width + c) + own)
                from_most, from_least = from_most - to_most, from_least - to_least
                for e in range(wiring.edge_offsets[slot], wiring.edge_offsets[slot + 1]):
                    i = np.int64(wiring.sources[e]) * width
                    j = base + np.int64(wiring.relations[e]) * width
                    plain = message(kind, inputs, i, j, c)
                    m = plain
                    if weights is not None:
                        m = m * splat(x, weights[e])
                    back = constant + slope * m + where_equal(m, most, from_most) + where_equal(m, least, from_least)
                    if weight_gradient is not None:
                        weight_gradient[e] += total(back * plain)
                    if weights is not None:
                        back = back * splat(x, weights[e])
                    push_back(kind, back, inputs, sums, i, j, c)
