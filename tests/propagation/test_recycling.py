"""Memory is used again when nobody refers to it any more, and never before."""

import threading

import torch
from torch import Tensor

from kgcf.propagation.layers.recycling import MOST_KEPT, SMALLEST, Recycler

LIKE = torch.zeros(1)


def test_memory_comes_back_when_the_last_view_goes() -> None:
    recycler = Recycler(smallest=0)
    first = recycler.empty(100, 8, LIKE)
    address, view = first.data_ptr(), first[10:20]
    del first
    assert recycler.empty(100, 8, LIKE).data_ptr() != address, "a view still refers to it"
    del view
    assert recycler.empty(90, 8, LIKE).data_ptr() == address


def test_what_is_in_use_is_never_handed_out_again() -> None:
    recycler = Recycler(smallest=0)
    held = [recycler.zeros(torch.zeros(50, 4)) for _ in range(5)]
    for index, tensor in enumerate(held):
        tensor += index
    for _ in range(3):
        recycler.empty(50, 4, LIKE).fill_(-1)
    assert [float(tensor.sum()) for tensor in held] == [200.0 * index for index in range(5)]


def test_memory_far_too_large_is_left_alone_and_the_oldest_goes() -> None:
    recycler = Recycler(most_idle=100_000, smallest=0)
    large = recycler.empty(2500, 8, LIKE).data_ptr()
    assert recycler.empty(100, 8, LIKE).data_ptr() != large
    several = [recycler.empty(2000, 8, LIKE) for _ in range(3)]
    del several
    recycler.empty(1, 1, LIKE)
    assert recycler.idle <= 100_000


def test_shapes_and_precisions() -> None:
    recycler = Recycler(smallest=0)
    assert recycler.empty(0, 8, LIKE).shape == (0, 8)
    assert recycler.empty(3, 5, LIKE.double()).dtype == torch.float64
    assert recycler.zeros(torch.ones(3, 5)).abs().sum() == 0


def test_threads_share_what_others_gave_back() -> None:
    recycler = Recycler(smallest=0)
    found: list[Tensor] = []

    def work() -> None:
        for size in range(1, 200):
            tensor = recycler.empty(size, 8, LIKE).fill_(size)
            assert (tensor == size).all()
        found.append(recycler.empty(100, 8, LIKE))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tensor.data_ptr() for tensor in found}) == 3
    assert recycler.idle > 0


def test_small_arrays_are_ordinary_ones() -> None:
    """Tiny graphs would fill the shelf with thousands of them, and every step would look through it."""
    recycler = Recycler()
    for _ in range(5):
        recycler.empty(100, 8, LIKE)
    assert recycler.idle == 0
    recycler.empty(SMALLEST, 1, LIKE)
    assert recycler.idle > 0


def test_the_shelf_has_few_places() -> None:
    recycler = Recycler(smallest=0)
    held = [recycler.empty(size, 8, LIKE) for size in range(100, 100 + 2 * MOST_KEPT)]
    del held
    recycler.empty(1, 1, LIKE)
    assert len(recycler._idle) <= MOST_KEPT + 1
