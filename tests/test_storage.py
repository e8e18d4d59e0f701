"""A half-written file is never mistaken for a whole one."""

from pathlib import Path

import numpy as np
import pytest

from kgcf.errors import StorageError
from kgcf.storage import map_arrays, read_header, replacing, save_arrays, write_json, write_text


def test_arrays_come_back_with_type_shape_and_metadata(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.array([True, False]),
        "c": np.zeros((0, 4), dtype=np.float64),
    }
    save_arrays(tmp_path / "x.safetensors", arrays, {"note": "hello"})
    found = map_arrays(tmp_path / "x.safetensors")
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert (found[name] == array).all()
    assert read_header(tmp_path / "x.safetensors")[1] == {"note": "hello"}


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError, match="halfway"), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError("halfway")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.txt"]


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Could not write .*No space left"), replacing(tmp_path / "x"):
        raise OSError(28, "No space left on device")


def test_rubbish_is_not_an_array_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes((3).to_bytes(8, "little") + b"abc")
    with pytest.raises(StorageError, match="header does not parse"):
        map_arrays(path)
    with pytest.raises(StorageError, match="No such file"):
        map_arrays(tmp_path / "none")


def test_json_refuses_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())
