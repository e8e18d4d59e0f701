"""Several processes on one batch: `torchrun --nproc-per-node 2 -m kgcf train …`; gloo on the CPU."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from kgcf.errors import SettingsError
from kgcf.training.step import TERMS, Sums


@dataclass(frozen=True)
class World:
    """Which of how many processes this is; (0, 1) alone."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and talks."""
        return self.rank == 0

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """The leading process runs the block, then the others do: they find its files there."""
        if self.size > 1 and not self.leads:
            dist.barrier()
        yield
        if self.size > 1 and self.leads:
            dist.barrier()

    def share(self, sums: Sums) -> None:
        """Add the sums of all processes, in place, in one exchange."""
        if self.size == 1:
            return
        tail = [sums.terms.get(name, 0.0) for name in TERMS] + [name in sums.terms for name in TERMS]
        tail += [sums.queries, sums.unreached, sums.impossible]
        gradients = [gradient.cpu().reshape(-1).double() for gradient in sums.gradients]  # gloo adds on the CPU
        flat = torch.cat([*gradients, torch.tensor(tail, dtype=torch.double)])
        dist.all_reduce(flat)
        begin = 0
        for gradient in sums.gradients:
            gradient.copy_(flat[begin : begin + gradient.numel()].view_as(gradient))
            begin += gradient.numel()
        values, count = flat[begin:].tolist(), len(TERMS)
        sums.terms = {TERMS[i]: values[i] for i in range(count) if values[count + i] > 0}
        sums.queries, sums.unreached, sums.impossible = (round(value) for value in values[2 * count :])

    def check_processes(self, before: int, finished: bool, run: Path) -> None:
        """Refuse to continue a run with another number of processes: its sums would be rounded in another order."""
        if finished or before == self.size:
            return
        launcher = "kgcf" if before == 1 else f"torchrun --nproc-per-node {before} -m kgcf"
        raise SettingsError(
            f"{run} was trained by {_processes(before)} and cannot be continued by {_processes(self.size)}: every "
            "batch would be divided in another way, and the weights would not be those of the run without the stop. "
            f"Nothing was changed. Continue with {_processes(before)} (on one machine: {launcher} resume {run})."
        )

    def gather(self, values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The arrays of all processes, in the order of their ranks."""
        if self.size == 1:
            return [values]
        found: list[object] = [None] * self.size
        dist.all_gather_object(found, values)
        return [np.asarray(part) for part in found]


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def join_world() -> World:
    """Join the processes that torchrun started; alone without torchrun."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return World()
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return World(dist.get_rank(), dist.get_world_size())


def leave_world() -> None:
    """Say goodbye to the other processes."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
