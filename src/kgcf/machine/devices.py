"""Where a model computes: the CPU, or a CUDA device that this machine's torch can use."""

import re

import torch

from kgcf.choices import CPU as CPU
from kgcf.errors import SettingsError


def find_device(name: str) -> torch.device:
    """The device called `cpu`, `cuda` or `cuda:N`; refuse one that is unknown or not there."""
    there = available_devices()
    if name in there:
        return torch.device(name)
    listed = f"Available here: {', '.join(there)}."
    if not re.fullmatch(r"cuda(:\d+)?", name):
        raise SettingsError(f"There is no device called '{name}': devices are cpu, cuda and cuda:N. {listed}")
    if len(there) > 1:
        raise SettingsError(f"The device '{name}' is not there. {listed} Choose one of these.")
    raise SettingsError(
        f"The device '{name}' is not available: {_why_no_cuda()}. {listed} "
        "Use the CPU, which is the default, or install a torch that fits your graphics card and its driver."
    )


def available_devices() -> list[str]:
    """Names that `find_device` accepts on this machine."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [CPU, *(["cuda"] if count else []), *(f"cuda:{index}" for index in range(count))]


def worker_threads(device: torch.device, wanted: int | None) -> int:
    """Threads among which work is divided: as wanted, or one per core; one where the device divides it by itself."""
    return (wanted or torch.get_num_threads()) if device.type == CPU else 1


def _why_no_cuda() -> str:
    built = torch.version.cuda or torch.version.hip
    return f"torch {torch.__version__} " + ("finds no usable device" if built else "was built for the CPU only")
