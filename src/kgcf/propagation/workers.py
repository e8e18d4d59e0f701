"""Parts of a batch side by side: one Python thread per core, each computing on one core without the lock.

Splitting small matrices over cores costs more than it gains; splitting the batch does not. What is summed is
summed in the order of the parts, so that the result depends on the parts and not on the threads.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import Self, TypeVar

import torch
from torch import Tensor

P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Gradients:
    """The sum of the losses of all parts and its gradient with respect to every parameter."""

    losses: list[float]  # per part
    sums: list[Tensor]  # per parameter

    @property
    def loss(self) -> float:
        """The losses added up."""
        return sum(self.losses)

    def assign(self, parameters: Sequence[Tensor]) -> None:
        """Store every gradient where an optimiser looks for it."""
        for parameter, gradient in zip(parameters, self.sums, strict=True):
            parameter.grad = gradient


class Workers:
    """Threads that take parts; a context manager, because torch gets one core per thread while it is open."""

    def __init__(self, threads: int) -> None:
        self.threads = max(threads, 1)
        self._before = torch.get_num_threads()

    def __enter__(self) -> Self:
        self._before = torch.get_num_threads()
        torch.set_num_threads(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch.set_num_threads(self._before)

    def map(self, function: Callable[[int, P], T], parts: Sequence[P]) -> list[T]:
        """function(worker, part) of every part, in the order of the parts; each worker runs one at a time.

        The worker's number, 0 … threads − 1, lets a function keep things that no two threads may share.
        """
        results: dict[int, T] = {}
        errors: list[BaseException] = []
        waiting = iter(range(len(parts)))
        lock = threading.Lock()

        def work(worker: int) -> None:
            torch.set_num_threads(1)
            while not errors:
                with lock:
                    index = next(waiting, None)
                if index is None:
                    return
                try:
                    results[index] = function(worker, parts[index])
                except BaseException as error:  # raised again in the thread that waits
                    errors.append(error)

        helpers = [threading.Thread(target=work, args=(i,)) for i in range(1, min(self.threads, len(parts)))]
        for helper in helpers:
            helper.start()
        work(0)
        for helper in helpers:
            helper.join()
        if errors:
            raise errors[0]
        return [results[index] for index in range(len(parts))]

    def sum_gradients(
        self, losses_of: Callable[[int, P], Iterable[Tensor]], parts: Sequence[P], parameters: Sequence[Tensor]
    ) -> Gradients:
        """The gradient of the sum of all losses; each loss is differentiated, and its memory freed, on its own.

        `losses_of(worker, part)` yields losses, for instance one per plan where a part is too large for one plan.
        """

        def differentiate(worker: int, part: P) -> tuple[float, list[Tensor | None]]:
            value = 0.0
            sums: list[Tensor | None] = [None] * len(parameters)
            for loss in losses_of(worker, part):
                value += float(loss.detach())
                if loss.requires_grad:
                    found = torch.autograd.grad(loss, parameters, allow_unused=True)
                    sums = [_plus(old, new) for old, new in zip(sums, found, strict=True)]
            return value, sums

        done = self.map(differentiate, parts)
        totals: list[Tensor | None] = [None] * len(parameters)
        for _, sums in done:
            totals = [_plus(old, new) for old, new in zip(totals, sums, strict=True)]
        filled = [
            torch.zeros_like(parameter) if total is None else total.contiguous()
            for parameter, total in zip(parameters, totals, strict=True)
        ]
        return Gradients([value for value, _ in done], filled)


def _plus(old: Tensor | None, new: Tensor | None) -> Tensor | None:
    if old is None or new is None:
        return new if old is None else old
    return old + new  # what autograd returned may share memory with itself: not in place


def split_evenly(count: int, parts: int) -> list[slice]:
    """Consecutive slices of nearly equal length, none empty."""
    parts = max(min(parts, count), 1)
    edges = [round(i * count / parts) for i in range(parts + 1)]
    return [slice(begin, end) for begin, end in pairwise(edges) if end > begin]
