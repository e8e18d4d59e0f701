"""Pipes, ASCII terminals, full disks, Ctrl-C and `-` through the real command line."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kgcf.cli import app
from kgcf.data.source import read
from kgcf.errors import DataError, SettingsError
from kgcf.pipeline import fit
from kgcf.screen import print_json
from tests.training.tiny import TINY

SMALL = (*TINY, "objective.negatives=4", "training.threads=1", "training.epochs=1")
COMMAND = [sys.executable, "-m", "kgcf"]
Write = Callable[[str, str | bytes], Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run about people with names beyond ASCII."""
    triples = [(f"é{a}", "père", f"é{b}") for a in range(12) for b in range(a + 1, 12) if (a * b) % 3]
    folder = tmp_path_factory.mktemp("manners") / "run"
    fit(read(triples), folder, preset="nbfnet", changes=SMALL)
    return folder


def typed(*arguments: str | Path) -> None:
    """A command in this process; only what concerns the process itself needs another one."""
    app([str(argument) for argument in arguments], standalone_mode=False)


def test_complete_writes_to_standard_output(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    question = ("complete", run, "--top", "5")
    typed(*question, "--output", tmp_path / "new.tsv")
    capfd.readouterr()
    typed(*question, "--output", "-")
    shown = capfd.readouterr()
    assert shown.out == (tmp_path / "new.tsv").read_text(encoding="utf-8")
    assert "5 triples written to standard output" in shown.err
    assert not Path("-").exists()


def test_the_format_can_be_chosen(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    typed("complete", run, "--top", "3", "--output", "-", "--format", "jsonl")
    assert [json.loads(line)["rank"] for line in capfd.readouterr().out.splitlines()] == [1, 2, 3]
    typed("complete", run, "--top", "3", "--format", "csv")
    assert len(list(csv.DictReader(io.StringIO(capfd.readouterr().out)))) == 3
    typed("complete", run, "--top", "3", "--output", tmp_path / "new", "--format", "nt")
    assert len((tmp_path / "new").read_text().splitlines()) == 3
    typed("complete", run, "--top", "3", "--output", tmp_path / "NEW.TSV")
    assert (tmp_path / "NEW.TSV").read_text(encoding="utf-8").startswith("head\t")
    with pytest.raises(SettingsError, match="must end in"):
        typed("complete", run, "--top", "3", "--output", tmp_path / "new.xlsx")


def test_results_and_pages_on_standard_output(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    typed("evaluate", run, "--split", "valid", "--output", "-")
    assert json.loads(capfd.readouterr().out)["protocol"]["split"] == "valid"
    typed("explain", run, "é1", "père", "é2", "--html", "-")
    page = capfd.readouterr().out
    assert page.lower().startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert not Path("-").exists()


def test_options_for_reading_reach_the_reader(write: Write, run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write("g.tsv", "# people\nanna \tpère\tben\nben\tpère\tcleo\n")
    with pytest.raises(DataError, match="line 1: '# people' is no triple. It looks like a comment"):
        typed("datasets", "info", path)
    typed("datasets", "info", path, "--comment", "#", "--strip", "--json")
    assert json.loads(capfd.readouterr().out)["entities"] == 3
    question = ("predict", run, "--head", "anna", "--relation", "père", "--graph", path)
    with pytest.raises(DataError, match="looks like a comment"):
        typed(*question)
    typed(*question, "--comment", "#", "--strip")
    answered = capfd.readouterr()
    assert "cleo" in answered.out
    assert "note: g.tsv: spaces around 'anna ' stripped" in answered.err


def test_json_is_escaped_where_it_cannot_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, full = (io.TextIOWrapper(io.BytesIO(), encoding=name, errors="replace") for name in ("ascii", "utf-8"))
    for stream, expected in ((plain, b'"\\u00e9"\n'), (full, '"é"\n'.encode())):
        monkeypatch.setattr(sys, "stdout", stream)
        print_json("é")
        stream.flush()
        assert stream.buffer.getvalue() == expected


@pytest.mark.parametrize("both", [False, True])
def test_a_reader_that_has_gone_is_no_failure(run: Path, both: bool) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    errors = writing if both else subprocess.PIPE
    command = [*COMMAND, "complete", str(run), "--output", "-"]
    done = subprocess.run(command, stdout=writing, stderr=errors, text=True, check=False)
    os.close(writing)
    assert done.returncode == 0
    if not both:
        assert "triples written" in done.stderr
        assert "Broken" not in done.stderr
        assert "Exception" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_behind_standard_output_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, "datasets", "ls"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: Standard output cannot be written: No space left on device.\n")


@pytest.mark.parametrize(("head", "code"), [("é1", 0), ("ü", 1)])
def test_an_ascii_terminal_gets_replacements(run: Path, head: str, code: int) -> None:
    plain = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    command = [*COMMAND, "predict", str(run), "--head", head, "--relation", "père", "--known"]
    done = subprocess.run(command, capture_output=True, check=False, env=plain)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    expected = done.stdout if code == 0 else done.stderr
    assert ("?1" if code == 0 else "Error: There is no entity called '?'") in expected.decode("ascii")


INTERRUPTED = """
import os, signal, sys
moment = sys.argv[1]

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupter())
from kgcf.__main__ import main
sys.argv[1:] = ["compare", "nothing"]
main()
"""


@pytest.mark.parametrize("module", ["kgcf.cli", "typer", "numpy", "torch", "kgcf.cli.tune", "kgcf.runs.comparison"])
def test_interrupts_are_quiet_while_importing(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


def test_interrupts_are_quiet_at_work(write: Write) -> None:
    path = write("g.tsv", "".join(f"e{i}\tr{i % 50}\te{(i * i + 1) % 3000}\n" for i in range(30_000)))
    command = [*COMMAND, "counterfactuals", str(path), "--no-cache"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("note: ")
    process.send_signal(signal.SIGINT)
    shown, said = process.communicate(timeout=120)
    assert (process.returncode, shown) == (130, "")
    assert said.endswith("Stopped.\n")
    assert "Traceback" not in said
    assert "Aborted" not in said


def test_an_ignored_interrupt_stays_ignored() -> None:
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'trap "" INT; exec {sys.executable} -m kgcf --version'], stdout=subprocess.PIPE, text=True
    )
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    assert process.communicate()[0].startswith("kgcf ")
    assert process.returncode == 0
