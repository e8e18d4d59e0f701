"""Several processes on one batch: `torchrun --nproc-per-node 2 -m kgcf train …`; gloo on the CPU."""

import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from kgcf.training.step import Sums


@dataclass(frozen=True)
class World:
    """Which of how many processes this is; (0, 1) alone."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and talks."""
        return self.rank == 0

    def share(self, sums: Sums) -> None:
        """Add the sums of all processes, in place, in one exchange."""
        if self.size == 1:
            return
        names = sorted(sums.terms) if self.leads else []
        names = self.tell(names)
        tail = [sums.terms.get(name, 0.0) for name in names] + [sums.queries, sums.unreached, sums.impossible]
        flat = torch.cat([g.reshape(-1).double() for g in sums.gradients] + [torch.tensor(tail, dtype=torch.double)])
        dist.all_reduce(flat)
        begin = 0
        for gradient in sums.gradients:
            gradient.copy_(flat[begin : begin + gradient.numel()].view_as(gradient))
            begin += gradient.numel()
        values = flat[begin:].tolist()
        sums.terms = dict(zip(names, values, strict=False))
        sums.queries, sums.unreached, sums.impossible = (round(value) for value in values[len(names) :])

    def gather(self, values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The arrays of all processes, in the order of their ranks."""
        if self.size == 1:
            return [values]
        found: list[object] = [None] * self.size
        dist.all_gather_object(found, values)
        return [np.asarray(part) for part in found]

    def tell(self, value: list[str]) -> list[str]:
        """What the leading process says, to everybody."""
        if self.size == 1:
            return value
        box: list[object] = [value]
        dist.broadcast_object_list(box, src=0)
        told = box[0]
        assert isinstance(told, list)
        return told


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
