"""Threads must change nothing but the time."""

import threading

import pytest
import torch

from kgcf.propagation.workers import Workers


def test_results_come_in_the_order_of_the_parts_and_workers_do_not_overlap() -> None:
    busy: set[int] = set()
    meeting = threading.Barrier(2, timeout=30)

    def square(worker: int, part: int) -> int:
        assert worker not in busy
        busy.add(worker)
        if part < 2:
            meeting.wait()  # passes only if two threads run at once
        busy.discard(worker)
        return part * part

    with Workers(2) as workers:
        assert workers.map(square, list(range(9))) == [part * part for part in range(9)]


def test_an_error_in_a_thread_is_raised() -> None:
    def fail(worker: int, part: int) -> int:
        if part == 3:
            raise ValueError("part three")
        return part

    with Workers(2) as workers, pytest.raises(ValueError, match="part three"):
        workers.map(fail, list(range(6)))


def test_torch_gets_its_threads_back() -> None:
    torch.set_num_threads(2)
    with Workers(2):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
