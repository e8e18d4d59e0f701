"""Threads must change nothing but the time."""

import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from kgcf.propagation.workers import Workers, split_evenly


def test_the_sum_depends_on_the_parts_and_not_on_the_threads() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(37, 5, generator=generator)
    weight, unused = torch.randn(5, generator=generator).requires_grad_(), torch.zeros(2, requires_grad=True)

    def losses(worker: int, part: slice) -> Iterator[Tensor]:
        for row in rows[part]:
            yield (row @ weight).square()

    results = []
    for threads in (1, 2, 3):
        with Workers(threads) as workers:
            results.append(workers.sum_gradients(losses, split_evenly(37, 5), [weight, unused]))
    expected = torch.autograd.grad((rows @ weight).square().sum(), weight)[0]
    torch.testing.assert_close(results[0].sums[0], expected)
    for result in results:
        assert torch.equal(result.sums[0], results[0].sums[0])
        assert result.losses == results[0].losses
        assert torch.equal(result.sums[1], torch.zeros(2))
    results[0].assign([weight, unused])
    assert weight.grad is results[0].sums[0]


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


def test_split_evenly() -> None:
    assert split_evenly(7, 3) == [slice(0, 2), slice(2, 5), slice(5, 7)]
    assert split_evenly(2, 5) == [slice(0, 1), slice(1, 2)]
    assert split_evenly(0, 2) == []
