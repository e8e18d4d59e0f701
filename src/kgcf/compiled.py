"""The one way kgcf compiles a loop: numba, cached on disk, with the interpreter lock released."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
T = TypeVar("T")


def kernel(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function of arrays and numbers; its annotations stay true for the type checker.

    The compiled function releases the lock, so that kernels run side by side in Python threads.
    """
    compiled: Callable[P, T] = numba.njit(cache=True, nogil=True)(function)
    return compiled
