"""The update of a state in numba, around its matrix products: scaling, layer norm, ReLU, residual, and gradients."""

import numpy as np
from numpy.typing import NDArray

from kgcf.compiled import kernel
from kgcf.propagation.simd import VECTOR_BYTES, Floats, larger, load, splat, store, total, where_larger


@kernel
def gather_own(x: Floats, previous: NDArray[np.int32], own: Floats) -> None:
    """own [S, D] ← the state of the same entity one layer before, in x [P, D]; zero where there was none."""
    width = x.shape[1]
    lanes = VECTOR_BYTES // x.itemsize
    zero = splat(x, 0.0)
    for slot in range(len(previous)):
        row = np.int64(previous[slot]) * width
        for c in range(0, width, lanes):
            store(own, slot * width + c, load(x, row + c) if row >= 0 else zero)


@kernel
def scatter_own(own_gradient: Floats, previous: NDArray[np.int32], x_gradient: Floats) -> None:
    """Add the gradients of own states [S, D] to the states they were [P, D]."""
    width = x_gradient.shape[1]
    lanes = VECTOR_BYTES // x_gradient.itemsize
    for slot in range(len(previous)):
        row = np.int64(previous[slot]) * width
        if row >= 0:
            for c in range(0, width, lanes):
                store(x_gradient, row + c, load(x_gradient, row + c) + load(own_gradient, slot * width + c))


@kernel
def finish_forward(
    mixed: Floats,  # [S, D] own · W₀ᵀ, overwritten by the sum of all parts, normalised if there is a norm
    parts: Floats,  # [S, C·D] statistics times their C blocks of W
    scales: Floats | None,  # [S] log-degree over its mean, where C = 3
    bias: Floats,  # [D]
    context: Floats | None,  # [S, D]
    gain: Floats | None,  # [D] of the layer norm
    shift: Floats | None,  # [D]
    epsilon: float,
    own: Floats | None,  # [S, D] added after the ReLU, where there is a residual
    smallest: float,  # scales are at least this when divided by
    deviations: Floats,  # [S] filled: 1 / standard deviation of the row
    out: Floats,  # [S, D] filled
) -> None:
    """x' = own + ReLU(norm(own W₀ + f W₁ + s f W₂ + f W₃ / s + b + context)), row by row."""
    width = mixed.shape[1]
    lanes = VECTOR_BYTES // mixed.itemsize
    zero = splat(mixed, 0.0)
    for slot in range(len(mixed)):
        row, first = slot * width, slot * parts.shape[1]
        added = zero
        for c in range(0, width, lanes):
            y = load(mixed, row + c) + load(parts, first + c) + load(bias, c)
            if scales is not None:
                y = y + splat(mixed, scales[slot]) * load(parts, first + width + c)
                y = y + splat(mixed, 1.0 / max(scales[slot], smallest)) * load(parts, first + 2 * width + c)
            if context is not None:
                y = y + load(context, row + c)
            store(mixed, row + c, y)
            added = added + y
        if gain is not None and shift is not None:
            mean = splat(mixed, total(added) / width)
            squared = zero
            for c in range(0, width, lanes):
                y = load(mixed, row + c) - mean
                squared = squared + y * y
            deviations[slot] = 1.0 / np.sqrt(total(squared) / width + epsilon)
            inverse = splat(mixed, deviations[slot])
            for c in range(0, width, lanes):
                store(mixed, row + c, (load(mixed, row + c) - mean) * inverse)
        for c in range(0, width, lanes):
            z = load(mixed, row + c)
            if gain is not None and shift is not None:
                z = z * load(gain, c) + load(shift, c)
            z = larger(z, zero)
            if own is not None:
                z = z + load(own, row + c)
            store(out, row + c, z)


@kernel
def finish_backward(
    gradient: Floats,  # [S, D] of the updated states
    mixed: Floats,  # [S, D] left by the forward pass
    scales: Floats | None,
    gain: Floats | None,
    shift: Floats | None,
    deviations: Floats,
    smallest: float,
    parts_gradient: Floats,  # [S, C·D] filled; its first D columns are the gradient of the sum
    bias_gradient: Floats,  # [D] added to, as are the following
    gain_gradient: Floats,  # [D]
    shift_gradient: Floats,  # [D]
) -> None:
    """Gradients of everything before the ReLU, row by row."""
    width = mixed.shape[1]
    lanes = VECTOR_BYTES // mixed.itemsize
    zero = splat(mixed, 0.0)
    for slot in range(len(mixed)):
        row, first = slot * width, slot * parts_gradient.shape[1]
        added, crossed = zero, zero
        for c in range(0, width, lanes):
            y, g = load(mixed, row + c), load(gradient, row + c)
            if gain is not None and shift is not None:
                g = where_larger(y * load(gain, c) + load(shift, c), zero, g)
                store(gain_gradient, c, load(gain_gradient, c) + g * y)
                store(shift_gradient, c, load(shift_gradient, c) + g)
                g = g * load(gain, c)
                added, crossed = added + g, crossed + g * y
            else:
                g = where_larger(y, zero, g)
            store(parts_gradient, first + c, g)
        mean, slope = splat(mixed, total(added) / width), splat(mixed, total(crossed) / width)
        for c in range(0, width, lanes):
            g = load(parts_gradient, first + c)
            if gain is not None:
                g = (g - mean - slope * load(mixed, row + c)) * splat(mixed, deviations[slot])
                store(parts_gradient, first + c, g)
            store(bias_gradient, c, load(bias_gradient, c) + g)
            if scales is not None:
                store(parts_gradient, first + width + c, g * splat(mixed, scales[slot]))
                inverse = splat(mixed, 1.0 / max(scales[slot], smallest))
                store(parts_gradient, first + 2 * width + c, g * inverse)
