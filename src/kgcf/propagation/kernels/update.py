"""The update of a state in numba, around its matrix products: scaling, layer norm, ReLU, residual, and gradients."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel
from kgcf.propagation.kernels.simd import VECTOR_BYTES, Floats, larger, load, splat, store, total, where_larger
from kgcf.propagation.layers.encoder import SMALLEST_SCALE


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


class Norm(NamedTuple):
    """A layer norm."""

    gain: Floats  # [D]
    shift: Floats  # [D]
    epsilon: float


@kernel
def add_parts(
    mixed: Floats,  # [S, D] own · W₀ᵀ, overwritten by the sum of all parts
    parts: Floats,  # [S, C·D] statistics times their C blocks of W
    scales: Floats | None,  # [S] log-degree over its mean, where C = 3
    bias: Floats,  # [D]
    context: Floats | None,  # [S, D]
    positions: NDArray[np.int64] | None,  # [S] the row of every slot in the parts, where not its own
) -> None:
    """own W₀ + f W₁ + s f W₂ + f W₃ / max(s, .01) + b + context."""
    width = mixed.shape[1]
    lanes = VECTOR_BYTES // mixed.itemsize
    for slot in range(len(mixed)):
        row, first = slot * width, slot * parts.shape[1]
        if positions is not None:
            first = positions[slot] * parts.shape[1]
        for c in range(0, width, lanes):
            y = load(mixed, row + c) + load(parts, first + c) + load(bias, c)
            if scales is not None:
                y = y + splat(mixed, scales[slot]) * load(parts, first + width + c)
                y = y + splat(mixed, 1.0 / max(scales[slot], SMALLEST_SCALE)) * load(parts, first + 2 * width + c)
            if context is not None:
                y = y + load(context, row + c)
            store(mixed, row + c, y)


@kernel
def _normalise(rows: Floats, first: int, width: int, epsilon: float) -> float:
    """Shift and scale the row that begins at `first` to mean 0 and variance 1; 1 over its standard deviation."""
    lanes = VECTOR_BYTES // rows.itemsize
    added, squared = splat(rows, 0.0), splat(rows, 0.0)
    for c in range(first, first + width, lanes):
        added = added + load(rows, c)
    mean = splat(rows, total(added) / width)
    for c in range(first, first + width, lanes):
        y = load(rows, c) - mean
        squared = squared + y * y
    inverse = 1.0 / np.sqrt(total(squared) / width + epsilon)
    for c in range(first, first + width, lanes):
        store(rows, c, (load(rows, c) - mean) * splat(rows, inverse))
    return float(inverse)


@kernel
def finish_forward(
    mixed: Floats,  # [S, D] overwritten by its normalised rows, where there is a norm
    norm: Norm | None,
    own: Floats | None,  # [S, D] where there is a residual
    deviations: Floats,  # [S] filled: 1 over the standard deviation of every row
    out: Floats,  # [S, D] filled
) -> None:
    """own + ReLU(norm(mixed)), row by row."""
    width = mixed.shape[1]
    lanes = VECTOR_BYTES // mixed.itemsize
    for slot in range(len(mixed)):
        row = slot * width
        if norm is not None:
            deviations[slot] = _normalise(mixed, row, width, norm.epsilon)
        for c in range(0, width, lanes):
            z = load(mixed, row + c)
            if norm is not None:
                z = z * load(norm.gain, c) + load(norm.shift, c)
            z = larger(z, splat(mixed, 0.0))
            if own is not None:
                z = z + load(own, row + c)
            store(out, row + c, z)


@kernel
def finish_backward(
    gradient: Floats,  # [S, D] of the updated states
    mixed: Floats,  # [S, D] left by the forward pass
    norm: Norm | None,
    deviations: Floats,  # [S]
    scales: Floats | None,  # [S]
    parts: Floats,  # [S, C·D] filled: the gradients of the parts; the first D columns are those of the sum
    sums: Floats,  # [3, D] added to: gradients of the bias, of the norm's gain and of its shift
) -> None:
    """Gradients of everything before the ReLU, row by row."""
    width = mixed.shape[1]
    lanes = VECTOR_BYTES // mixed.itemsize
    zero = splat(mixed, 0.0)
    for slot in range(len(mixed)):
        row, first = slot * width, slot * parts.shape[1]
        added, crossed = zero, zero
        for c in range(0, width, lanes):
            y, g = load(mixed, row + c), load(gradient, row + c)
            if norm is not None:
                g = where_larger(y * load(norm.gain, c) + load(norm.shift, c), zero, g)
                store(sums, width + c, load(sums, width + c) + g * y)
                store(sums, 2 * width + c, load(sums, 2 * width + c) + g)
                g = g * load(norm.gain, c)
                added, crossed = added + g, crossed + g * y
            else:
                g = where_larger(y, zero, g)
            store(parts, first + c, g)
        mean, slope = splat(mixed, total(added) / width), splat(mixed, total(crossed) / width)
        for c in range(0, width, lanes):
            g = load(parts, first + c)
            if norm is not None:
                g = (g - mean - slope * load(mixed, row + c)) * splat(mixed, deviations[slot])
                store(parts, first + c, g)
            store(sums, c, load(sums, c) + g)
            if scales is not None:
                store(parts, first + width + c, g * splat(mixed, scales[slot]))
                store(parts, first + 2 * width + c, g * splat(mixed, 1.0 / max(scales[slot], SMALLEST_SCALE)))
