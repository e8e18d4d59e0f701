"""The messages of DistMult, TransE and RotatE, one vector of channels at a time, forward and backward.

Every kind is a type, so that each kernel is compiled once per kind and no branch is left in its loops.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import extending
from numpy.typing import NDArray

from kgcf.propagation.kernels.simd import Floats, Narrow, Span, Vector, Wide, load_as, multiply_add, store

_overload: Any = extending.overload  # strict=False: annotations may differ


class DistMult(NamedTuple):
    """Messages x ∘ r."""

    span: Span = Narrow()


class TransE(NamedTuple):
    """Messages x + r."""

    span: Span = Narrow()


class RotatE(NamedTuple):
    """Messages x turned by r: the first half of the channels are real, the second half imaginary parts."""

    span: Span = Narrow()


Kind = DistMult | TransE | RotatE
_KINDS: dict[str, type[Kind]] = {"distmult": DistMult, "transe": TransE, "rotate": RotatE}


def kind_of(message: str, x: Floats) -> Kind:
    """The messages of a name for states [P, D], in the widest vectors that divide their rows (RotatE: half of them)."""
    row = x.shape[1] * x.itemsize // (2 if message == "rotate" else 1)
    return _KINDS[message](Narrow() if row % Wide().size else Wide())


class Wiring(NamedTuple):
    """One layer of a plan as the kernels take it: all of its slots, of which `first` … `last` − 1 are to be computed.

    Rows of statistics and of their gradients count from `first`.
    """

    slot_offsets: NDArray[np.int64]  # [B + 1]
    degrees: NDArray[np.int32]  # [S]
    reached: NDArray[np.int32]  # [S] edges from reached entities, of which those listed may be a draw
    edge_offsets: NDArray[np.int64]  # [S + 1]
    sources: NDArray[np.int32]  # [M]
    relations: NDArray[np.int32]  # [M]
    heads: NDArray[np.int64]  # [B] slot of the head, or −1
    vector_rows: NDArray[np.int64]  # [B] where a query's relation vectors begin; all 0 where they are free
    first: int
    last: int


class Tables(NamedTuple):
    """What messages are made of, or the gradients of it."""

    x: Floats  # [P, D] states of the layer before
    relations: Floats  # [T, D] relation vectors: T = 2R, or U·2R for U query relations that they depend on
    queries: Floats  # [B, D] boundary states of the heads


def message(kind: Kind, inputs: Tables, i: int, j: int, c: int) -> Vector:
    """The channels c … of the message that the state at x[i] sends along the relation at relations[j]."""
    raise NotImplementedError("only kernels make messages")


def _message_of(kind: Any, inputs: Any, i: Any, j: Any, c: Any) -> Any:  # noqa: ANN401
    """What a kernel calls for `message`, chosen while it is compiled by the type of its kind."""

    def distmult(kind: Kind, inputs: Tables, i: int, j: int, c: int) -> Vector:
        return load_as(kind.span, inputs.x, i + c) * load_as(kind.span, inputs.relations, j + c)

    def transe(kind: Kind, inputs: Tables, i: int, j: int, c: int) -> Vector:
        return load_as(kind.span, inputs.x, i + c) + load_as(kind.span, inputs.relations, j + c)

    def rotate(kind: Kind, inputs: Tables, i: int, j: int, c: int) -> Vector:
        span, x, relations = kind.span, inputs.x, inputs.relations
        half = x.shape[1] // 2
        own, turned = load_as(span, x, i + c), load_as(span, relations, j + c)
        if c < half:
            return own * turned - load_as(span, x, i + c + half) * load_as(span, relations, j + c + half)
        return load_as(span, x, i + c - half) * turned + own * load_as(span, relations, j + c - half)

    return {DistMult: distmult, TransE: transe, RotatE: rotate}[kind.instance_class]


_overload(message, strict=False)(_message_of)


def push_to_state(kind: Kind, gradient: Vector, inputs: Tables, sums: Tables, i: int, j: int, c: int) -> None:
    """Add the gradient of a message's channels c … to that of the state it was made of."""
    raise NotImplementedError("only kernels differentiate messages")


def _push_to_state_of(kind: Any, gradient: Any, inputs: Any, sums: Any, i: Any, j: Any, c: Any) -> Any:  # noqa: ANN401
    """What a kernel calls for `push_to_state`."""

    def distmult(kind: Kind, gradient: Vector, inputs: Tables, sums: Tables, i: int, j: int, c: int) -> None:
        before = load_as(kind.span, sums.x, i + c)
        store(sums.x, i + c, multiply_add(gradient, load_as(kind.span, inputs.relations, j + c), before))

    def transe(kind: Kind, gradient: Vector, inputs: Tables, sums: Tables, i: int, j: int, c: int) -> None:
        store(sums.x, i + c, load_as(kind.span, sums.x, i + c) + gradient)

    def rotate(kind: Kind, gradient: Vector, inputs: Tables, sums: Tables, i: int, j: int, c: int) -> None:
        span, x, relations = kind.span, sums.x, inputs.relations
        half = x.shape[1] // 2
        if c < half:
            store(x, i + c, load_as(span, x, i + c) + gradient * load_as(span, relations, j + c))
            partner = i + c + half
            store(x, partner, load_as(span, x, partner) - gradient * load_as(span, relations, j + c + half))
        else:
            partner = i + c - half
            store(x, partner, load_as(span, x, partner) + gradient * load_as(span, relations, j + c))
            store(x, i + c, load_as(span, x, i + c) + gradient * load_as(span, relations, j + c - half))

    return {DistMult: distmult, TransE: transe, RotatE: rotate}[kind.instance_class]


_overload(push_to_state, strict=False)(_push_to_state_of)


def add_own(kind: Kind, added: Vector, gradient: Vector, inputs: Tables, i: int, c: int) -> Vector:
    """`added` plus what a message's gradient says about the channels c … of its relation vector.

    Edges of one relation stand side by side: a kernel adds up over them and stores once (`push_to_relation`); else
    every addition would wait for the one before to reach the memory.
    """
    raise NotImplementedError("only kernels differentiate messages")


def _add_own_of(kind: Any, added: Any, gradient: Any, inputs: Any, i: Any, c: Any) -> Any:  # noqa: ANN401
    """What a kernel calls for `add_own`."""

    def distmult(kind: Kind, added: Vector, gradient: Vector, inputs: Tables, i: int, c: int) -> Vector:
        return multiply_add(gradient, load_as(kind.span, inputs.x, i + c), added)

    def transe(kind: Kind, added: Vector, gradient: Vector, inputs: Tables, i: int, c: int) -> Vector:
        return added + gradient

    def rotate(kind: Kind, added: Vector, gradient: Vector, inputs: Tables, i: int, c: int) -> Vector:
        half = inputs.x.shape[1] // 2
        source = i + c if c < half else i + c - half
        return multiply_add(gradient, load_as(kind.span, inputs.x, source), added)

    return {DistMult: distmult, TransE: transe, RotatE: rotate}[kind.instance_class]


_overload(add_own, strict=False)(_add_own_of)


def add_partner(kind: Kind, added: Vector, gradient: Vector, inputs: Tables, i: int, c: int) -> Vector:
    """The same about the channels of the other half, which RotatE's messages are made of too."""
    raise NotImplementedError("only kernels differentiate messages")


def _add_partner_of(kind: Any, added: Any, gradient: Any, inputs: Any, i: Any, c: Any) -> Any:  # noqa: ANN401
    """What a kernel calls for `add_partner`."""

    def nothing(kind: Kind, added: Vector, gradient: Vector, inputs: Tables, i: int, c: int) -> Vector:
        return added

    def rotate(kind: Kind, added: Vector, gradient: Vector, inputs: Tables, i: int, c: int) -> Vector:
        half = inputs.x.shape[1] // 2
        if c < half:
            return added - gradient * load_as(kind.span, inputs.x, i + c + half)
        return added + gradient * load_as(kind.span, inputs.x, i + c)

    return {DistMult: nothing, TransE: nothing, RotatE: rotate}[kind.instance_class]


_overload(add_partner, strict=False)(_add_partner_of)


def push_to_relation(kind: Kind, sums: Tables, j: int, c: int, own: Vector, partner: Vector) -> None:
    """Add what `add_own` and `add_partner` found over some messages to the gradient of their relation vector."""
    raise NotImplementedError("only kernels differentiate messages")


def _push_to_relation_of(kind: Any, sums: Any, j: Any, c: Any, own: Any, partner: Any) -> Any:  # noqa: ANN401
    """What a kernel calls for `push_to_relation`."""

    def single(kind: Kind, sums: Tables, j: int, c: int, own: Vector, partner: Vector) -> None:
        store(sums.relations, j + c, load_as(kind.span, sums.relations, j + c) + own)

    def double(kind: Kind, sums: Tables, j: int, c: int, own: Vector, partner: Vector) -> None:
        half = sums.x.shape[1] // 2
        other = j + c + half if c < half else j + c - half
        store(sums.relations, j + c, load_as(kind.span, sums.relations, j + c) + own)
        store(sums.relations, other, load_as(kind.span, sums.relations, other) + partner)

    return {DistMult: single, TransE: single, RotatE: double}[kind.instance_class]


_overload(push_to_relation, strict=False)(_push_to_relation_of)
