"""A device that does not exist: it computes on the CPU, and refuses what a real one refuses.

Tensors on it wrap CPU tensors. An operation that joins one of them with a plain tensor of any size but a single
number fails, and so does `.numpy()`; `.to`, `.cpu` and `copy_` cross over. It stands behind torch's own dispatcher, so
autograd, modules and optimisers treat it as any device. Forgetting `.to(device)` shows here without a GPU. Stricter
than CUDA in one thing: indices on the CPU are refused too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

NAME = "pretended"
_CROSSING = (torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default)


class PretendedTensor(Tensor):
    """A tensor that says it is on the pretended device."""

    plain: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls: type["PretendedTensor"], plain: Tensor) -> "PretendedTensor":
        made: PretendedTensor = Tensor._make_wrapper_subclass(
            cls,
            plain.shape,
            strides=plain.stride(),
            storage_offset=plain.storage_offset(),
            dtype=plain.dtype,
            device=torch.device(NAME, 0),
        )
        made.plain = plain
        return made

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return _compute(operation, *args, **(kwargs or {}))


def _compute(operation: Any, *args: Any, **kwargs: Any) -> Any:
    """An operation on wrapped tensors, or one that makes a tensor on the device."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    here = [tensor for tensor in tensors if isinstance(tensor, PretendedTensor)]
    apart = [tensor for tensor in tensors if not isinstance(tensor, PretendedTensor) and tensor.dim() > 0]
    if here and apart and operation not in _CROSSING:
        raise RuntimeError(f"{operation} was given tensors on two devices, {NAME} and cpu.")
    target = kwargs.get("device")
    if target is not None:
        kwargs["device"] = torch.device("cpu")
    result = operation(*tree_map(_unwrap, args), **tree_map(_unwrap, kwargs))
    if operation is torch.ops.aten.copy_.default:
        return args[0]
    stays = bool(here) if target is None else target.type == NAME
    if not stays:
        return result
    known = {id(tensor.plain): tensor for tensor in here}  # what was changed in place stays the tensor it was
    return tree_map(lambda leaf: _wrap(leaf, known), result)


def _wrap(value: Any, known: dict[int, PretendedTensor]) -> Any:
    if not isinstance(value, Tensor):
        return value
    return known[id(value)] if id(value) in known else PretendedTensor(value)


def _unwrap(value: Any) -> Any:
    return value.plain if isinstance(value, PretendedTensor) else value


def can_pretend() -> bool:
    """Whether torch is new enough to be told of devices in Python."""
    return hasattr(backend_registration, "_setup_privateuseone_for_python_backend")


@cache
def _register() -> torch.library.Library:
    """Make torch know the device, once and for good in this process, and before anything was differentiated."""
    backend_registration._setup_privateuseone_for_python_backend(NAME)
    library = torch.library.Library("_", "IMPL")  # type: ignore[no-untyped-call]
    library.fallback(_compute, "PrivateUse1")  # type: ignore[no-untyped-call]
    return library


class _Detours(TorchFunctionMode):
    """What torch's C++ does past devices that live in Python: `torch.tensor(…, device=…)` and `tolist`."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.tensor and kwargs.get("device") is not None:
            return function(*args, **{**kwargs, "device": "cpu"}).to(kwargs["device"])
        if function is Tensor.tolist and isinstance(args[0], PretendedTensor):
            return args[0].plain.tolist()
        return function(*args, **kwargs)


@contextmanager
def pretending() -> Iterator[torch.device]:
    """The device, for the main thread."""
    _register()
    with _Detours():
        yield torch.device(NAME, 0)
