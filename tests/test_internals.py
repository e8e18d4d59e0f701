"""What we use of numba and llvmlite without their promise; a new version that breaks it says so here, in a sentence."""

import inspect
from collections.abc import Callable
from typing import Any

import numba
import pytest
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.core import caching, cgutils

from kgcf.machine import compiled


def doubled(x: float) -> float:
    return 2 * x


def cache_slot() -> bool:
    return "_cache" in vars(numba.njit(doubled))


def cache_file() -> bool:
    found: Any = caching.FunctionCache(doubled)  # type: ignore[no-untyped-call]
    made: Any = caching.IndexDataCacheFile("folder", found._impl.filename_base, found._impl.locator.get_source_stamp())  # type: ignore[no-untyped-call]
    return isinstance(found._cache_file, type(made)) and str(made._index_path).startswith("folder")


def cache_methods() -> bool:
    wanted = {"load_overload": ["self", "sig", "target_context"], "save_overload": ["self", "sig", "data"]}
    found = {name: list(inspect.signature(getattr(caching.FunctionCache, name)).parameters) for name in wanted}
    return found == wanted and hasattr(caching.FunctionCache, "cache_path")


def cache_used() -> bool:
    kernel: Any = compiled.kernel(doubled)
    return isinstance(kernel._cache, compiled._KernelCache) and kernel(2.0) == 4.0


def cache_folder() -> bool:
    return hasattr(numba.config, "CACHE_DIR")


def models() -> bool:
    return hasattr(extending.models, "PrimitiveModel") and callable(extending.register_model)


def intrinsics() -> bool:
    return callable(extending.intrinsic) and callable(cgutils.get_or_insert_function)


def vectors() -> bool:
    return str(ir.VectorType(ir.FloatType(), 8)) == "<8 x float>" and types.float32.bitwidth == 32


INTERNALS: dict[str, tuple[Callable[[], bool], str]] = {
    "cache_slot": (cache_slot, "a compiled function no longer has its cache in `_cache`"),
    "cache_file": (
        cache_file,
        "a cache no longer keeps its index in `_cache_file`: it would not follow our sources",
    ),
    "cache_methods": (cache_methods, "`load_overload` or `save_overload` of the cache take other arguments"),
    "cache_used": (cache_used, "kernels do not use our cache, or do not compute"),
    "cache_folder": (cache_folder, "`numba.config.CACHE_DIR`, which names the folder of compiled code, is gone"),
    "models": (models, "`PrimitiveModel` or `register_model`, which our vector type is made of, are gone"),
    "intrinsics": (
        intrinsics,
        "`intrinsic` or `cgutils.get_or_insert_function`, which load and store vectors, are gone",
    ),
    "vectors": (vectors, "llvmlite writes a vector of eight floats differently, or types have no `bitwidth`"),
}


@pytest.mark.parametrize("name", INTERNALS)
def test_an_internal_that_we_lean_on_is_as_it_was(name: str) -> None:
    check, broken = INTERNALS[name]
    try:
        fine = check()
    except Exception as error:
        fine, broken = False, f"{broken} ({type(error).__name__}: {error})"
    where = "src/kgcf/machine/compiled.py" if name.startswith("cache") else "src/kgcf/propagation/kernels/simd.py"
    assert fine, f"numba {numba.__version__}: {broken}. See {where}, and the upper bound in pyproject.toml."
