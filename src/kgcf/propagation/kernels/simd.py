"""Vectors of 256 or 512 bits inside numba kernels: eight or sixteen float32 at a time, on any processor.

Loops over the D channels of a row are where the engine spends its time, and the compiler does not vectorise
them by itself. A kernel reads a `Vector` with `load`, computes with +, −, × and the functions below, and writes
it back with `store`; LLVM turns this into whatever the machine has. Indices count elements of the flat,
contiguous array. A kernel that meets both sizes is told by a span, `Narrow` or `Wide`, whose type decides while it is
compiled (`load_as`, `splat_as`); two narrow vectors in one wide halve the bookkeeping around them.
"""

# ruff: noqa: ANN401 (numba and llvmlite hand over values without types)

import operator
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.core import cgutils
from numpy.typing import NDArray

Floats = NDArray[np.floating]
VECTOR_BYTES = 32


class Narrow(NamedTuple):
    """Vectors of 256 bits."""

    size: int = VECTOR_BYTES


class Wide(NamedTuple):
    """Vectors of 512 bits; where the machine has none, the compiler makes each of two."""

    size: int = 2 * VECTOR_BYTES


Span = Narrow | Wide
_SIZES: dict[type, int] = {Narrow: VECTOR_BYTES, Wide: 2 * VECTOR_BYTES}

_intrinsic: Any = extending.intrinsic
_insert_function: Any = cgutils.get_or_insert_function


class Vector(Protocol):
    """What a kernel may do with a vector; the type exists in compiled code only."""

    def __add__(self, other: "Vector") -> "Vector": ...
    def __sub__(self, other: "Vector") -> "Vector": ...
    def __mul__(self, other: "Vector") -> "Vector": ...


class VectorType(types.Type):
    """The numba type of a vector of one floating-point type."""

    def __init__(self, dtype: Any, size: int = VECTOR_BYTES) -> None:
        self.dtype = dtype
        self.lanes = 8 * size // dtype.bitwidth
        super().__init__(name=f"Vector({dtype} x {self.lanes})")


class _VectorModel(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, kind: VectorType) -> None:
        element = ir.FloatType() if kind.dtype == types.float32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(element, kind.lanes))  # type: ignore[no-untyped-call]


extending.register_model(VectorType)(_VectorModel)


def _pointer(context: Any, builder: Any, signature: Any, args: Any, kind: VectorType) -> Any:
    """The address of args[0][args[1]] as that of a vector."""
    data = context.make_array(signature.args[0])(context, builder, value=args[0]).data
    index = context.cast(builder, args[1], signature.args[1], types.intp)
    return builder.bitcast(builder.gep(data, [index]), context.get_value_type(kind).as_pointer())


def _load(typing: Any, array: Any, index: Any) -> Any:
    kind = VectorType(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature, args, kind), align=kind.dtype.bitwidth // 8)

    return kind(array, index), generate


def _load_as(typing: Any, span: Any, array: Any, index: Any) -> Any:
    kind = VectorType(array.dtype, _SIZES[span.instance_class])

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        inner = signature.return_type(*signature.args[1:])
        return builder.load(_pointer(context, builder, inner, args[1:], kind), align=kind.dtype.bitwidth // 8)

    return kind(span, array, index), generate


def _store(typing: Any, array: Any, index: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature, args, vector)
        builder.store(args[2], pointer, align=vector.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, index, vector), generate


def _splat(typing: Any, array: Any, value: Any) -> Any:
    kind = VectorType(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _repeated(context, builder, kind, args[1], signature.args[1])

    return kind(array, value), generate


def _splat_as(typing: Any, span: Any, array: Any, value: Any) -> Any:
    kind = VectorType(array.dtype, _SIZES[span.instance_class])

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _repeated(context, builder, kind, args[2], signature.args[2])

    return kind(span, array, value), generate


def _repeated(context: Any, builder: Any, kind: VectorType, value: Any, given: Any) -> Any:
    """A vector with a number of the type `given` in every lane."""
    scalar = context.cast(builder, value, given, kind.dtype)
    empty = ir.Constant(context.get_value_type(kind), ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), kind.lanes), [0] * kind.lanes)
    return builder.shuffle_vector(first, empty, zeros)


def _total(typing: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = [builder.extract_element(args[0], ir.Constant(ir.IntType(32), i)) for i in range(vector.lanes)]
        while len(lanes) > 1:  # pairwise
            lanes = [builder.fadd(a, b) for a, b in zip(lanes[::2], lanes[1::2], strict=True)]
        return lanes[0]

    return vector.dtype(vector), generate


def _root(typing: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        name = f"llvm.sqrt.v{vector.lanes}f{vector.dtype.bitwidth}"
        function = _insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
        return builder.call(function, args)

    return vector(vector), generate


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """LLVM fuses it where the machine has an instruction for that, and only there."""
    bits = 32 if isinstance(a.type.element, ir.FloatType) else 64
    name = f"llvm.fmuladd.v{a.type.count}f{bits}"
    function = _insert_function(builder.module, ir.FunctionType(a.type, [a.type] * 3), name)
    return builder.call(function, [a, b, c])


def _elementwise(emit: Callable[..., Any], arity: int) -> Any:
    """An intrinsic that takes vectors of one type and returns one of the same type."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return emit(builder, *args)

    if arity == 2:
        return _intrinsic(lambda typing, a, b: (a(a, b), generate))
    return _intrinsic(lambda typing, a, b, c: (a(a, b, c), generate))


def _where_equal(builder: Any, a: Any, b: Any, value: Any) -> Any:
    return builder.select(builder.fcmp_ordered("==", a, b), value, ir.Constant(value.type, None))


def _where_larger(builder: Any, a: Any, b: Any, value: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), value, ir.Constant(value.type, None))


load: Callable[[Floats, int], Vector] = _intrinsic(_load)
store: Callable[[Floats, int, Vector], None] = _intrinsic(_store)
splat: Callable[[Floats, float], Vector] = _intrinsic(_splat)  # the number in every lane; the array gives the type
load_as: Callable[[Span, Floats, int], Vector] = _intrinsic(_load_as)
splat_as: Callable[[Span, Floats, float], Vector] = _intrinsic(_splat_as)
total: Callable[[Vector], float] = _intrinsic(_total)  # the sum of the lanes
root: Callable[[Vector], Vector] = _intrinsic(_root)
larger: Callable[[Vector, Vector], Vector] = _elementwise(lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y), 2)
smaller: Callable[[Vector, Vector], Vector] = _elementwise(lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y), 2)
divide: Callable[[Vector, Vector], Vector] = _elementwise(lambda builder, x, y: builder.fdiv(x, y), 2)
multiply_add: Callable[[Vector, Vector, Vector], Vector] = _elementwise(_multiply_add, 3)  # a · b + c
where_equal: Callable[[Vector, Vector, Vector], Vector] = _elementwise(_where_equal, 3)  # c where a = b, else 0
where_larger: Callable[[Vector, Vector, Vector], Vector] = _elementwise(_where_larger, 3)  # c where a > b, else 0

_add = _elementwise(lambda builder, x, y: builder.fadd(x, y), 2)
_subtract = _elementwise(lambda builder, x, y: builder.fsub(x, y), 2)
_multiply = _elementwise(lambda builder, x, y: builder.fmul(x, y), 2)


def _both_vectors(a: Any, b: Any) -> bool:
    return isinstance(a, VectorType) and isinstance(b, VectorType)


# Three functions with names of their own: compiled functions that share a qualified name share a symbol.
def _overload_add(a: Any, b: Any) -> Any:
    def compute_sum(a: Any, b: Any) -> Any:
        return _add(a, b)

    return compute_sum if _both_vectors(a, b) else None


def _overload_subtract(a: Any, b: Any) -> Any:
    def compute_difference(a: Any, b: Any) -> Any:
        return _subtract(a, b)

    return compute_difference if _both_vectors(a, b) else None


def _overload_multiply(a: Any, b: Any) -> Any:
    def compute_product(a: Any, b: Any) -> Any:
        return _multiply(a, b)

    return compute_product if _both_vectors(a, b) else None


extending.overload(operator.add)(_overload_add)
extending.overload(operator.sub)(_overload_subtract)
extending.overload(operator.mul)(_overload_multiply)
