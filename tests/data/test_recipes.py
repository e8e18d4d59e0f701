"""From a public home to the files of a graph: joined, unpacked, put together, and always checked."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgcf.data import download
from kgcf.data.download import DownloadError
from kgcf.data.recipes import obtain
from tests.homes import Home, graph_facts, serving

FILES = {
    "train.txt": b"a\tr\tb\nb\tr\tc\nc\ts\ta\n",
    "valid.txt": b"a\ts\tc\n",
    "test.txt": "b\ts\tä\n".encode(),
}


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    with serving() as running:
        yield running


def stored(root: Path) -> dict[str, bytes]:
    """Every file of the graph's folder, unpacked; leftovers would show."""
    return {p.name.removesuffix(".gz"): gzip.decompress(p.read_bytes()) for p in (root / "g").iterdir()}


def files_step(home: Home, files: dict[str, bytes], folder: str = "here") -> dict[str, object]:
    for name, content in files.items():
        home.content[f"/{folder}/{name}"] = content
    return {"kind": "files", "files": {name: [f"{home.url}/{folder}/{name}"] for name in files}}


def test_plain_files(home: Home, tmp_path: Path) -> None:
    facts = graph_facts("g", FILES, [files_step(home, FILES)])
    counted: list[int] = []
    assert obtain(facts, tmp_path, counted.append) == []
    assert stored(tmp_path) == FILES
    assert sum(counted) == sum(map(len, FILES.values()))


def test_what_is_there_is_not_fetched_again(home: Home, tmp_path: Path) -> None:
    facts = graph_facts("g", FILES, [files_step(home, FILES)])
    obtain(facts, tmp_path)
    (tmp_path / "g" / "valid.txt.gz").unlink()
    home.asked.clear()
    obtain(facts, tmp_path)
    assert [path for path, _ in home.asked] == ["/here/valid.txt"]
    assert stored(tmp_path) == FILES


def test_a_damaged_file_is_replaced(home: Home, tmp_path: Path) -> None:
    facts = graph_facts("g", FILES, [files_step(home, FILES)])
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "train.txt").write_bytes(b"a\tr\tb\n")
    (tmp_path / "g" / "test.txt.gz").write_bytes(gzip.compress(FILES["test.txt"])[:-9])
    obtain(facts, tmp_path)
    assert stored(tmp_path) == FILES


def test_joined_files(home: Home, tmp_path: Path) -> None:
    step = files_step(home, FILES)
    home.content |= {"/facts.txt": FILES["train.txt"][:6], "/rest.txt": FILES["train.txt"][6:]}
    urls = step["files"]
    assert isinstance(urls, dict)
    urls["train.txt"] = [f"{home.url}/facts.txt", f"{home.url}/rest.txt"]
    obtain(graph_facts("g", FILES, [step]), tmp_path)
    assert stored(tmp_path) == FILES


def test_carriage_returns_are_taken_out(home: Home, tmp_path: Path) -> None:
    with_returns = {name: content.replace(b"\n", b"\r\n") for name, content in FILES.items()}
    obtain(graph_facts("g", FILES, [files_step(home, with_returns)]), tmp_path)
    assert stored(tmp_path) == FILES


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_members_of_an_archive(kind: str, home: Home, tmp_path: Path) -> None:
    packed = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("deep/readme.txt", "no")
            for name, content in FILES.items():
                archive.writestr(f"deep/er/{name}", content)
    else:
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name, content in {"readme.txt": b"no", **FILES}.items():
                entry = tarfile.TarInfo(f"./{name}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    home.content[f"/set.{kind}"] = packed.getvalue()
    step: dict[str, object] = {"kind": "archive", "url": f"{home.url}/set.{kind}", "files": list(FILES)}
    obtain(graph_facts("g", FILES, [step]), tmp_path)
    assert stored(tmp_path) == FILES


def test_a_wrong_checksum_is_refused_and_named(home: Home, tmp_path: Path) -> None:
    changed = FILES | {"valid.txt": b"a\ts\tb\n"}
    facts = graph_facts("g", FILES, [files_step(home, changed)])
    with pytest.raises(DownloadError, match=r"g could not be downloaded\. valid\.txt from .*/here does not have the"):
        obtain(facts, tmp_path)
    assert stored(tmp_path) == {name: FILES[name] for name in ("train.txt", "test.txt")}


def test_a_mirror_is_tried_next(home: Home, tmp_path: Path) -> None:
    changed = FILES | {"valid.txt": b"a\ts\tb\n"}
    steps = [files_step(home, changed, "first"), files_step(home, FILES, "second")]
    del home.content["/first/test.txt"]
    assert obtain(graph_facts("g", FILES, steps), tmp_path) == []
    assert stored(tmp_path) == FILES
    assert "/second/train.txt" not in [path for path, _ in home.asked]


def test_a_broken_archive_is_a_sentence(home: Home, tmp_path: Path) -> None:
    home.content["/set.tar.gz"] = b"not an archive"
    step: dict[str, object] = {"kind": "archive", "url": f"{home.url}/set.tar.gz", "files": list(FILES)}
    with pytest.raises(DownloadError, match="could not be unpacked"):
        obtain(graph_facts("g", FILES, [step]), tmp_path)
    assert stored(tmp_path) == {}


def test_without_name_files_the_graph_is_complete(home: Home, tmp_path: Path) -> None:
    named = FILES | {"entity_names.tsv": b"a\tAlpha\n"}
    step = files_step(home, named)
    del home.content["/here/entity_names.tsv"]
    notes = obtain(graph_facts("g", named, [step]), tmp_path)
    assert len(notes) == 1
    assert notes[0].startswith("g: without entity_names.tsv. ")
    assert "404" in notes[0]


def test_numbers_become_names(home: Home, tmp_path: Path) -> None:
    home.content |= {
        "/entity2id.txt": "4\na\t0\nb\t1\nc\t2\nä\t3\n".encode(),
        "/relation2id.txt": b"2\nr\t0\ns\t1\n",
        "/train2id.txt": b"3\n0 1 0\n1 2 0\n2 0 1\n",
        "/valid2id.txt": b"1\n0 2 1\n",
        "/test2id.txt": b"1\n1 3 1\n",
    }
    step: dict[str, object] = {
        "kind": "numbered",
        "entities": f"{home.url}/entity2id.txt",
        "relations": f"{home.url}/relation2id.txt",
        "files": {name: f"{home.url}/{name[:-4]}2id.txt" for name in FILES},
    }
    obtain(graph_facts("g", FILES, [step]), tmp_path)
    assert stored(tmp_path) == FILES


def test_names_from_aligned_splits(home: Home, tmp_path: Path) -> None:
    home.content |= {
        "/text/train.txt": b"alpha\tr\tbeta\nbeta\tr\tgamma\ngamma\ts\talpha\n",
        "/text/valid.txt": b"aleph\ts\tgamma\n",
        "/text/test.txt": "beta\ts\tälpha\n".encode(),
    }
    named = FILES | {"entity_names.tsv": "a\taleph|alpha\nb\tbeta\nc\tgamma\nä\tälpha\n".encode()}
    texts = {name: f"{home.url}/text/{name}" for name in FILES}
    aligned: dict[str, object] = {"kind": "aligned", "file": "entity_names.tsv", "texts": texts}
    assert obtain(graph_facts("g", named, [files_step(home, FILES), aligned]), tmp_path) == []
    assert stored(tmp_path) == named


def test_names_are_not_tried_without_their_splits(home: Home, tmp_path: Path) -> None:
    named = FILES | {"entity_names.tsv": b"a\tAlpha\n"}
    step = files_step(home, FILES)
    del home.content["/here/test.txt"]
    texts = {name: f"{home.url}/text/{name}" for name in FILES}
    aligned: dict[str, object] = {"kind": "aligned", "file": "entity_names.tsv", "texts": texts}
    with pytest.raises(DownloadError, match=r"g could not be downloaded\. .*/test\.txt answered 404 Not Found\.$"):
        obtain(graph_facts("g", named, [step, aligned]), tmp_path)


def test_no_public_home(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="It has no public home"):
        obtain(graph_facts("g", FILES, []), tmp_path)
