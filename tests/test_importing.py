"""While a command imports large libraries nobody searches them for garbage; afterwards Python does as before."""

import gc
import sys
from collections.abc import Iterator

import pytest

from kgcf.machine.interrupts import importing


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Leave the collector as it was."""
    yield
    gc.enable()
    gc.unfreeze()


def pretend_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "a_large_library", sys)


@pytest.mark.parametrize("collected", [True, False])
def test_no_garbage_is_looked_for_during_imports(collected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    (gc.enable if collected else gc.disable)()
    frozen = gc.get_freeze_count()
    with importing():
        assert not gc.isenabled()
        pretend_import(monkeypatch)
    assert gc.isenabled() == collected
    assert gc.get_freeze_count() > frozen + 1000  # what is there stays, so that later searches leave it out


def test_a_block_that_imports_nothing_new_leaves_objects_to_the_collector() -> None:
    frozen = gc.get_freeze_count()
    with importing():
        pass
    assert gc.get_freeze_count() == frozen


def test_an_import_that_fails_leaves_the_collector_on() -> None:
    with pytest.raises(ImportError), importing():
        raise ImportError
    assert gc.isenabled()
