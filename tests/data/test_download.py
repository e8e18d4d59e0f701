"""One file over HTTP, against a server on this machine: whole, cut, resumed, refused."""

import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kgcf.data.download import ATTEMPTS, DownloadError, fetch
from tests.homes import Home, serving

CONTENT = np.random.default_rng(0).bytes(300_000)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as running:
        running.content["/file"] = CONTENT
        yield running


def test_a_whole_file(home: Home, tmp_path: Path) -> None:
    received: list[int] = []
    fetch(f"{home.url}/file", tmp_path / "new" / "file", advance=received.append)
    assert (tmp_path / "new" / "file").read_bytes() == CONTENT
    assert sum(received) == len(CONTENT)
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["file"]
    assert home.asked == [("/file", None)]


def test_a_cut_connection_is_resumed(home: Home, tmp_path: Path) -> None:
    home.cut_after["/file"] = [100_000, 50_000]
    slept: list[float] = []
    received: list[int] = []
    fetch(f"{home.url}/file", tmp_path / "file", pause=slept.append, advance=received.append)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert home.asked == [("/file", None), ("/file", "bytes=100000-"), ("/file", "bytes=150000-")]
    assert sum(received) == len(CONTENT)
    assert slept == [1.0, 2.0]


def test_a_later_run_goes_on_where_this_one_gave_up(home: Home, tmp_path: Path) -> None:
    home.cut_after["/file"] = [10_000] * ATTEMPTS
    with pytest.raises(DownloadError, match=r"40,000 bytes are kept and the next attempt goes on from there"):
        fetch(f"{home.url}/file", tmp_path / "file", pause=lambda _: None)
    assert not (tmp_path / "file").exists()
    assert (tmp_path / "file.part").stat().st_size == 40_000
    fetch(f"{home.url}/file", tmp_path / "file")
    assert home.asked[-1] == ("/file", "bytes=40000-")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert not (tmp_path / "file.part").exists()


def test_a_server_without_ranges_sends_everything_again(home: Home, tmp_path: Path) -> None:
    home.ranges = False
    home.cut_after["/file"] = [100_000]
    fetch(f"{home.url}/file", tmp_path / "file", pause=lambda _: None)
    assert home.asked[1] == ("/file", "bytes=100000-")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_thrown_away(home: Home, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(b"x" * (len(CONTENT) + 5))
    fetch(f"{home.url}/file", tmp_path / "file", pause=lambda _: None)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_missing_file_is_not_asked_for_twice(home: Home, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"/nothing answered 404 Not Found"):
        fetch(f"{home.url}/nothing", tmp_path / "file")
    assert home.asked == [("/nothing", None)]
    assert list(tmp_path.iterdir()) == []


def test_a_busy_server_is_asked_again(home: Home, tmp_path: Path) -> None:
    home.failures["/file"] = [503, 429]
    fetch(f"{home.url}/file", tmp_path / "file", pause=lambda _: None)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert len(home.asked) == 3


def test_offline_is_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(DownloadError, match="could not be fetched: .*refused.*Is this machine online"):
        fetch(f"http://127.0.0.1:{port}/file", tmp_path / "file", pause=lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_host_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[object] = []

    def nowhere(*arguments: object, **_: object) -> None:
        looked_up.append(arguments)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DownloadError, match="Name or service not known. Is this machine online"):
        fetch("http://kgcf.invalid/file", tmp_path / "file", pause=lambda _: None)
    assert len(looked_up) == 1


def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match="timed out"):
            fetch(url, tmp_path / "file", timeout=0.05, pause=lambda _: None)
