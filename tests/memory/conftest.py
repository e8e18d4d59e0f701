"""One run with a memory for all tests of what uses it."""

from collections.abc import Iterator

import pytest
import torch

from tests.memory.remembering import Remembering, make_remembering


@pytest.fixture(autouse=True)
def one_torch_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Remembering:
    return make_remembering(tmp_path_factory.mktemp("remembering"))
