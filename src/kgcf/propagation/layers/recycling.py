"""Memory that goes round: a step takes its large arrays from those that earlier steps have given back.

The system has to find and clear every fresh page, which costs more than filling it: a fifth of a training step on
FB15k-237 went there. An array goes back by itself when nobody refers to it any more, so it cannot be handed out
twice. Threads come and go with every batch; what they gave back serves those that follow.
"""

import threading

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MOST_IDLE = 256e6  # bytes that may lie unused; the longest unused go first
MOST_KEPT = 64  # arrays that may lie unused: looking through them must stay cheap
SMALLEST = 2**18  # bytes: smaller arrays are ordinary ones, which the allocator itself takes from used memory
_SPARE = 1.25  # fresh memory is larger than asked for by this factor: the next step may need a little more
_WASTE = 2.0  # an array may lie in memory that is larger by this factor


class Recycler:
    """Hands out tensors in memory that was used before; they hold whatever it held."""

    def __init__(self, most_idle: float = MOST_IDLE, smallest: int = SMALLEST) -> None:
        self._most_idle = most_idle
        self._smallest = smallest
        self._idle: list[NDArray[np.uint8]] = []  # in the order in which they came back
        self._lock = threading.Lock()

    @property
    def idle(self) -> int:
        """Bytes that lie unused."""
        return sum(len(memory) for memory in self._idle)

    def empty(self, rows: int, columns: int, like: Tensor) -> Tensor:
        """[rows, columns] of unspecified content, with the dtype of another tensor, on the CPU."""
        size = rows * columns * like.element_size()
        if size < self._smallest:
            return torch.empty(rows, columns, dtype=like.dtype)
        with self._lock:
            memory = self._find(size)
        if memory is None:
            memory = np.empty(int(_SPARE * size) + 1, np.uint8)
        loan = torch.from_numpy(np.asarray(_Loan(self, memory)))  # the tensor keeps the loan, the loan the memory
        return loan[:size].view(like.dtype).view(rows, columns)

    def zeros(self, like: Tensor) -> Tensor:
        """Zeros of the shape [rows, columns] and dtype of another tensor."""
        return self.empty(like.shape[0], like.shape[1], like).zero_()

    def give_back(self, memory: NDArray[np.uint8]) -> None:
        """Called by the last reference; it may come in the middle of anything, so it takes no lock."""
        self._idle.append(memory)

    def _find(self, size: int) -> NDArray[np.uint8] | None:
        """The smallest idle memory that is large enough and not far too large; forgets the oldest beyond the limit."""
        best = -1
        for index in range(len(self._idle)):
            fits = size <= len(self._idle[index]) <= _WASTE * size
            if fits and (best < 0 or len(self._idle[index]) <= len(self._idle[best])):
                best = index
        found = self._idle.pop(best) if best >= 0 else None
        while len(self._idle) > MOST_KEPT or self.idle > self._most_idle:
            self._idle.pop(0)
        return found


class _Loan:
    """Memory while somebody uses it; numpy asks it where the memory is, and keeps it alive."""

    def __init__(self, owner: Recycler, memory: NDArray[np.uint8]) -> None:
        self._owner = owner
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self._owner.give_back(self._memory)


recycler = Recycler()
