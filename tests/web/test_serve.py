"""`kgcf serve` as people start it: a line when it is ready, quick answers then, a quiet end."""

import http.client
import importlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import uvicorn

from kgcf.cli import app
from kgcf.errors import SettingsError
from kgcf.runs.folder import RunFolder
from kgcf.runs.run import Run
from kgcf.web.application import make_application
from kgcf.web.guard import access_for
from kgcf.web.lane import Abandoned, Attend
from kgcf.web.limits import LIMITS
from kgcf.web.review.store import ReviewStore
from kgcf.web.served_run import ServedRun, open_runs
from kgcf.web.server import Place, listen


def typed(*arguments: str | Path) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


def test_a_server_from_start_to_stop(run: Run, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kgcf", "serve", str(run.folder.path), "--port", "0", "--reviews", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert process.stderr is not None
    lines: list[str] = []
    while not lines or "Ready" not in lines[-1]:
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    found = re.search(r"Ready after [\d.]+ s: http://127\.0\.0\.1:(\d+)/$", lines[-1])
    assert found is not None
    connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
    used = processor_seconds(process.pid)
    connection.request("GET", "/api/runs/family-run/question?head=e0&relation=parent")
    assert len(json.loads(connection.getresponse().read())["answers"]) == 10
    assert processor_seconds(process.pid) - used < 1  # nothing is left to compile or to load
    connection.close()
    assert (tmp_path / "family-run.sqlite").is_file()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    rest = process.stderr.read()
    process.stderr.close()
    assert "Traceback" not in rest


def processor_seconds(process: int) -> float:
    """What a process has computed so far; on a busy machine the clock says nothing."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_answers_leave_at_once_and_computing_is_bounded(run: Run, tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        assert taken.proto == socket.IPPROTO_TCP  # else asyncio leaves Nagle's algorithm on: 40 ms for every answer
    (served,) = open_runs([run.folder.path], reviews=tmp_path).values()
    assert served.observed.memory == LIMITS.workspace < served.run.settings.training.memory_gb * 1e9
    served.close()


def test_what_cannot_be_served_is_a_sentence(run: Run) -> None:
    with pytest.raises(SettingsError, match="kgcf serve --demo"):
        typed("serve")
    with pytest.raises(SettingsError, match="at least 8 characters"):
        typed("serve", run.folder.path, "--token", "short")
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"Cannot listen on 127.0.0.1, port {port}: Address already in use"):
            listen("127.0.0.1", port)


def test_a_review_inside_a_run_does_not_damage_it(run: Run, tmp_path: Path) -> None:
    copy = RunFolder(Path(shutil.copytree(run.folder.path, tmp_path / "copy")))
    store = ReviewStore(copy.file("review.sqlite"))
    copy.seal()
    store.add(run.complete("friend", top=3))
    copy.check()
    assert not copy.sealed("review.sqlite")


def test_the_address_that_is_printed() -> None:
    assert Place("127.0.0.1", 8000, access_for("127.0.0.1", None)).address(8000) == "http://127.0.0.1:8000/"
    assert Place("::1", 1, access_for("::1", "long enough")).address(1) == "http://[::1]:1/?token=long%20enough"
    everywhere = Place("0.0.0.0", 1, access_for("0.0.0.0", None)).address(1)
    assert everywhere.startswith(f"http://{socket.gethostname()}:1/?token=")


def test_the_demonstration_is_trained_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run) -> None:
    demo = importlib.import_module("kgcf.cli.demo")
    monkeypatch.setenv("KGCF_CACHE", str(tmp_path))
    trained: list[Path] = []

    def train(_: object, __: str, folder: Path) -> Run:
        trained.append(folder)
        folder.parent.mkdir(parents=True)
        folder.symlink_to(run.folder.path)
        return run

    monkeypatch.setattr(demo, "_train", train)
    first = demo.demo_run()
    assert first == demo.demo_run() == demo.kept_folder()
    assert trained == [first]


def test_who_leaves_frees_the_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a real connection: the reader hangs up while the model is busy, and the work stops."""
    served = ServedRun("family", run, "all", tmp_path / "review.sqlite")
    stopped, begun = threading.Event(), threading.Event()

    def slow(attend: Attend) -> None:
        begun.set()
        try:
            for _ in range(2000):
                attend()
                time.sleep(0.005)
        except Abandoned:
            stopped.set()
            raise

    monkeypatch.setattr("kgcf.web.api.ask", lambda *_: slow(served.observed.attend))
    port = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_application({"family": served}), log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port]})
    thread.start()
    try:
        with socket.create_connection(port.getsockname()) as reader:
            reader.sendall(b"GET /api/runs/family/question?head=e0&relation=parent HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert begun.wait(30)
        assert stopped.wait(30)
    finally:
        server.should_exit = True
        thread.join()
        port.close()
