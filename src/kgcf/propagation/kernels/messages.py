"""The messages of DistMult, TransE and RotatE, one vector of channels at a time, forward and backward.

Every kind is a type, so that each kernel is compiled once per kind and no branch is left in its loops.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import extending
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel
from kgcf.propagation.kernels.simd import Floats, Vector, load, splat, store

_overload: Any = extending.overload  # strict=False: annotations may differ


class DistMult(NamedTuple):
    """Messages x ∘ r."""


class TransE(NamedTuple):
    """Messages x + r."""


class RotatE(NamedTuple):
    """Messages x turned by r: the first half of the channels are real, the second half imaginary parts."""


Kind = DistMult | TransE | RotatE
KINDS: dict[str, Kind] = {"distmult": DistMult(), "transe": TransE(), "rotate": RotatE()}


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
def _add_to(array: Floats, index: int, value: Vector) -> None:
    """Add a vector to the elements index … of an array."""
    store(array, index, load(array, index) + value)


def message(kind: Kind, inputs: Tables, i: int, j: int, c: int) -> Vector:
    """The channels c … of the message that the state at x[i] sends along the relation at relations[j]."""
    raise NotImplementedError("only kernels make messages")


def _message_of(kind: Any, inputs: Any, i: Any, j: Any, c: Any) -> Any:  # noqa: ANN401
    """What a kernel calls for `message`, chosen while it is compiled by the type of its kind."""

    def distmult(kind: Kind, inputs: Tables, i: int, j: int, c: int) -> Vector:
        return load(inputs.x, i + c) * load(inputs.relations, j + c)

    def transe(kind: Kind, inputs: Tables, i: int, j: int, c: int) -> Vector:
        return load(inputs.x, i + c) + load(inputs.relations, j + c)

    def rotate(kind: Kind, inputs: Tables, i: int, j: int, c: int) -> Vector:
        x, relations = inputs.x, inputs.relations
        half = x.shape[1] // 2
        if c < half:
            return load(x, i + c) * load(relations, j + c) - load(x, i + c + half) * load(relations, j + c + half)
        return load(x, i + c - half) * load(relations, j + c) + load(x, i + c) * load(relations, j + c - half)

    return {DistMult: distmult, TransE: transe, RotatE: rotate}[kind.instance_class]


_overload(message, strict=False)(_message_of)


def push_back(kind: Kind, gradient: Vector, inputs: Tables, sums: Tables, i: int, j: int, c: int) -> None:
    """Add the gradient of a message's channels c … to the state and the relation vector it was made of."""
    raise NotImplementedError("only kernels differentiate messages")


def _push_back_of(kind: Any, gradient: Any, inputs: Any, sums: Any, i: Any, j: Any, c: Any) -> Any:  # noqa: ANN401
    """What a kernel calls for `push_back`, chosen while it is compiled by the type of its kind."""

    def distmult(kind: Kind, gradient: Vector, inputs: Tables, sums: Tables, i: int, j: int, c: int) -> None:
        _add_to(sums.x, i + c, gradient * load(inputs.relations, j + c))
        _add_to(sums.relations, j + c, gradient * load(inputs.x, i + c))

    def transe(kind: Kind, gradient: Vector, inputs: Tables, sums: Tables, i: int, j: int, c: int) -> None:
        _add_to(sums.x, i + c, gradient)
        _add_to(sums.relations, j + c, gradient)

    def rotate(kind: Kind, gradient: Vector, inputs: Tables, sums: Tables, i: int, j: int, c: int) -> None:
        x, relations = inputs.x, inputs.relations
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

    return {DistMult: distmult, TransE: transe, RotatE: rotate}[kind.instance_class]


_overload(push_back, strict=False)(_push_back_of)
