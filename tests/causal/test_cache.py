"""A cache cannot lie: changed inputs never meet an old result, damaged files are computed again with a notice."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kgcf.causal.cache import Cache, cache_key


class Computing:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> dict[str, NDArray[np.generic]]:
        self.calls += 1
        return {"x": np.arange(5, dtype=np.float64), "y": np.array([[True, False]])}


def test_the_same_inputs_are_computed_once(tmp_path: Path) -> None:
    compute, cache = Computing(), Cache(tmp_path)
    for _ in range(2):
        found = cache.arrays("thing", {"a": 1, "b": "two"}, compute)
        assert found["x"].tolist() == [0, 1, 2, 3, 4]
        assert found["y"].dtype == bool
    assert compute.calls == 1


@pytest.mark.parametrize(
    "changed", [{"a": 2, "b": "two"}, {"a": 1, "b": "two", "c": 0}, {"a": 1}, {"a": "1", "b": "two"}]
)
def test_changed_inputs_are_computed_anew(changed: dict[str, object], tmp_path: Path) -> None:
    compute, cache = Computing(), Cache(tmp_path)
    cache.arrays("thing", {"a": 1, "b": "two"}, compute)
    cache.arrays("thing", changed, compute)
    cache.arrays("other", {"a": 1, "b": "two"}, compute)
    assert compute.calls == 3
    assert cache_key("thing", changed) != cache_key("thing", {"a": 1, "b": "two"})


@pytest.mark.parametrize("damage", ["truncate", "empty", "flip", "garbage", "rename"])
def test_damage_is_noticed_and_repaired(damage: str, tmp_path: Path) -> None:
    notices: list[str] = []
    compute, cache = Computing(), Cache(tmp_path, notices.append)
    cache.arrays("thing", {"a": 1}, compute)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    if damage == "rename":  # the file of other inputs under this name
        cache.arrays("thing", {"a": 2}, Computing())
        (other,) = (file for file in tmp_path.iterdir() if file != path)
        other.rename(path)
    else:
        flipped = content[:-3] + bytes([content[-3] ^ 255]) + content[-2:]
        path.write_bytes({"truncate": content[:-7], "empty": b"", "flip": flipped, "garbage": b"x" * 99}[damage])
    assert cache.arrays("thing", {"a": 1}, compute)["x"].tolist() == [0, 1, 2, 3, 4]
    assert compute.calls == 2
    assert len(notices) == 1
    assert notices[0].endswith("The thing is computed again.")
    cache.arrays("thing", {"a": 1}, compute)
    assert compute.calls == 2
    assert notices[1:] == ["thing: taken from the cache"]


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    notices: list[str] = []
    found = Cache(tmp_path / "file" / "below", notices.append).arrays("thing", {}, Computing())
    assert len(found["x"]) == 5
    assert "could not be kept" in notices[0]


def test_without_a_folder_nothing_is_kept() -> None:
    compute = Computing()
    for _ in range(2):
        Cache(None).arrays("thing", {}, compute)
    assert compute.calls == 2
