"""The messages of DistMult, TransE and RotatE, one vector of channels at a time, forward and backward.

The kind of message is the *length* of a tuple, so that every kernel is compiled once per kind and no branch is
left in its loops. RotatE reads the first half of the channels as real, the second as imaginary parts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel
from kgcf.propagation.kernels.simd import Floats, Vector, load, splat, store

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


class Tables(NamedTuple):
    """What messages are made of, or the gradients of it."""

    x: Floats  # [P, D] states of the layer before
    relations: Floats  # [T, D] relation vectors: T = 2R, or B·2R where they depend on the query
    queries: Floats  # [B, D] boundary states of the heads


@kernel
def message(kind: Kind, inputs: Tables, i: int, j: int, c: int) -> Vector:
    """The channels c … of the message that the state at x[i] sends along the relation at relations[j]."""
    x, relations = inputs.x, inputs.relations
    if len(kind) == 1:
        return load(x, i + c) * load(relations, j + c)
    if len(kind) == 2:
        return load(x, i + c) + load(relations, j + c)
    half = x.shape[1] // 2
    if c < half:
        return load(x, i + c) * load(relations, j + c) - load(x, i + c + half) * load(relations, j + c + half)
    return load(x, i + c - half) * load(relations, j + c) + load(x, i + c) * load(relations, j + c - half)


@kernel
def _add_to(array: Floats, index: int, value: Vector) -> None:
    store(array, index, load(array, index) + value)


@kernel
def push_back(kind: Kind, gradient: Vector, inputs: Tables, sums: Tables, i: int, j: int, c: int) -> None:
    """Add the gradient of a message's channels c … to the state and the relation vector it was made of."""
    x, relations = inputs.x, inputs.relations
    if len(kind) == 1:
        _add_to(sums.x, i + c, gradient * load(relations, j + c))
        _add_to(sums.relations, j + c, gradient * load(x, i + c))
    elif len(kind) == 2:
        _add_to(sums.x, i + c, gradient)
        _add_to(sums.relations, j + c, gradient)
    else:
        half = x.shape[1] // 2
        if c < half:
            zero = splat(x, 0.0)
            _add_to(sums.x, i + c, gradient * load(relations, j + c))
            _add_to(sums.x, i + c + half, zero - gradient * load(relations, j + c + half))
            _add_to(sums.relations, j + c, gradient * load(x, i + c))
            _add_to(sums.relations, j + c + half, zero - gradient * load(x, i + c + half))
        else:
            _add_to(sums.x, i + c - half, gradient * load(relations, j + c))
            _add_to(sums.x, i + c, gradient * load(relations, j + c - half))
            _add_to(sums.relations, j + c, gradient * load(x, i + c - half))
            _add_to(sums.relations, j + c - half, gradient * load(x, i + c))
