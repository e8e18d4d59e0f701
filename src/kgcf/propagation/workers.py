"""Parts of a batch side by side: one Python thread per core, each computing on one core without the lock.

Splitting small matrices over cores costs more than it gains; splitting the batch does not. Results come in the order
of the parts, so that what is made of them depends on the parts and not on the threads.
"""

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

import torch

P = TypeVar("P")
T = TypeVar("T")


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
