"""A half-written file is never mistaken for a whole one."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError

from kgcf.errors import StorageError
from kgcf.storage import check_writable, map_arrays, read_header, replacing, save_arrays, write_json, write_text


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


def test_every_way_of_not_writing_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    arrays = {"a": np.zeros(3)}
    for path in (tmp_path / "file" / "x", tmp_path / "file" / "y" / "x", tmp_path / "folder"):
        for write in (lambda p: write_text(p, "x"), lambda p: save_arrays(p, arrays), check_writable):
            with pytest.raises(StorageError, match=r"Could not write .*(Not a directory|Is a directory|exists)"):
                write(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
    check_writable(tmp_path / "new" / "deep" / "x")
    assert not (tmp_path / "new").exists()


def test_what_safetensors_says_of_the_disk_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.numpy.save_file", fail)
    with pytest.raises(StorageError, match=r"Could not write .*x: No space left on device. .* Make room"):
        save_arrays(tmp_path / "x", {"a": np.zeros(3)})
    assert not list(tmp_path.iterdir())


def test_what_is_renamed_was_synced_before_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    sync, rename = os.fsync, os.replace

    def synced(handle: int) -> None:
        seen.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def renamed(source: object, target: object) -> None:
        seen.append("rename")
        rename(str(source), str(target))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    write_text(tmp_path / "x", "x")
    assert seen == ["file", "rename", "folder"]
