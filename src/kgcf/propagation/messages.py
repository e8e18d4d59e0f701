"""The messages of DistMult, TransE and RotatE, one vector of channels at a time, forward and backward.

The kind of message is the *length* of a tuple, so that every kernel is compiled once per kind and no branch is
left in its loops. RotatE reads the first half of the channels as real, the second as imaginary parts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.compiled import kernel
from kgcf.propagation.simd import Floats, Vector, load, store

Kind = tuple[int, ...]
KINDS: dict[str, Kind] = {"distmult": (0,), "transe": (0, 0), "rotate": (0, 0, 0)}


class Wiring(NamedTuple):
    """One layer of a plan as the kernels take it."""

    slot_offsets: NDArray[np.int64]  # [B + 1]
    degrees: NDArray[np.int32]  # [S]
    edge_offsets: NDArray[np.int64]  # [S + 1]
    sources: NDArray[np.int32]  # [M]
    relations: NDArray[np.int32]  # [M]
    heads: NDArray[np.int64]  # [B] slot of the head, or −1
    relation_stride: int  # relation vectors of one query: 2R if they depend on the query, else 0


@kernel
def message(kind: Kind, x: Floats, relations: Floats, i: int, j: int, c: int, width: int) -> Vector:
    """The channels c … of the message that state row i / D sends along relation row j / D."""
    if len(kind) == 1:
        return load(x, i + c) * load(relations, j + c)
    if len(kind) == 2:
        return load(x, i + c) + load(relations, j + c)
    half = width // 2
    if c < half:
        return load(x, i + c) * load(relations, j + c) - load(x, i + c + half) * load(relations, j + c + half)
    return load(x, i + c - half) * load(relations, j + c) + load(x, i + c) * load(relations, j + c - half)


@kernel
def _add_to(array: Floats, index: int, value: Vector) -> None:
    store(array, index, load(array, index) + value)


@kernel
def push_back(
    kind: Kind,
    gradient: Vector,
    x: Floats,
    relations: Floats,
    x_gradient: Floats,
    relation_gradient: Floats,
    i: int,
    j: int,
    c: int,
    width: int,
) -> None:
    """Add the gradient of a message's channels c … to the state and the relation vector it was made of."""
    if len(kind) == 1:
        _add_to(x_gradient, i + c, gradient * load(relations, j + c))
        _add_to(relation_gradient, j + c, gradient * load(x, i + c))
    elif len(kind) == 2:
        _add_to(x_gradient, i + c, gradient)
        _add_to(relation_gradient, j + c, gradient)
    else:
        half = width // 2
        if c < half:
            zero = gradient - gradient
            _add_to(x_gradient, i + c, gradient * load(relations, j + c))
            _add_to(x_gradient, i + c + half, zero - gradient * load(relations, j + c + half))
            _add_to(relation_gradient, j + c, gradient * load(x, i + c))
            _add_to(relation_gradient, j + c + half, zero - gradient * load(x, i + c + half))
        else:
            _add_to(x_gradient, i + c - half, gradient * load(relations, j + c))
            _add_to(x_gradient, i + c, gradient * load(relations, j + c - half))
            _add_to(relation_gradient, j + c, gradient * load(x, i + c - half))
            _add_to(relation_gradient, j + c - half, gradient * load(x, i + c))
