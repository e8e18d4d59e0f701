"""Vector operations against numpy, in both precisions."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel
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


@kernel
def compute(a: Floats, b: Floats, c: Floats, out: Floats) -> None:
    lanes = VECTOR_BYTES // a.itemsize
    width = a.shape[0]
    for i in range(0, width, lanes):
        x, y, z = load(a, i), load(b, i), load(c, i)
        store(out, i, x + y)
        store(out, width + i, x - y)
        store(out, 2 * width + i, x * y)
        store(out, 3 * width + i, divide(x, y))
        store(out, 4 * width + i, larger(x, y))
        store(out, 5 * width + i, smaller(x, y))
        store(out, 6 * width + i, where_equal(x, y, z))
        store(out, 7 * width + i, where_larger(x, y, z))
        store(out, 8 * width + i, root(x * x))
        store(out, 9 * width + i, splat(a, total(x)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_operation_equals_numpy(dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(1, 4, 16).astype(dtype) for _ in range(3))
    out: NDArray[np.floating] = np.empty((10, 16), dtype)
    compute(a, b, c, out)
    lanes = VECTOR_BYTES // a.itemsize
    expected = [
        a + b,
        a - b,
        a * b,
        a / b,
        np.maximum(a, b),
        np.minimum(a, b),
        np.where(a == b, c, 0),
        np.where(a > b, c, 0),
        a,
        a.reshape(-1, lanes).sum(1).repeat(lanes),
    ]
    np.testing.assert_array_equal(out, expected)
