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

from kgcf.data.source import read
from kgcf.pipeline import fit
from tests.cli.test_bad_input import kgcf
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


def test_complete_writes_to_standard_output(run: Path, tmp_path: Path) -> None:
    question = ("complete", run, "--top", "5")
    kgcf(*question, "--output", tmp_path / "new.tsv")
    shown = kgcf(*question, "--output", "-")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == (tmp_path / "new.tsv").read_text(encoding="utf-8")
    assert "5 triples written to standard output" in shown.stderr
    assert not Path("-").exists()


def test_the_format_can_be_chosen(run: Path, tmp_path: Path) -> None:
    lines = kgcf("complete", run, "--top", "3", "--output", "-", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["rank"] for line in lines] == [1, 2, 3]
    alone = kgcf("complete", run, "--top", "3", "--format", "csv").stdout
    assert len(list(csv.DictReader(io.StringIO(alone)))) == 3
    done = kgcf("complete", run, "--top", "3", "--output", tmp_path / "new", "--format", "nt")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "new").read_text().splitlines()) == 3
    kgcf("complete", run, "--top", "3", "--output", tmp_path / "NEW.TSV")
    assert (tmp_path / "NEW.TSV").read_text(encoding="utf-8").startswith("head\t")


def test_results_and_pages_on_standard_output(run: Path) -> None:
    results = kgcf("evaluate", run, "--split", "valid", "--output", "-")
    assert json.loads(results.stdout)["protocol"]["split"] == "valid"
    page = kgcf("explain", run, "é1", "père", "é2", "--html", "-")
    assert page.stdout.lower().startswith("<!doctype html>")
    assert page.stdout.rstrip().endswith("</html>")
    assert not Path("-").exists()


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


def test_an_ascii_terminal_gets_replacements(run: Path) -> None:
    plain = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}

    def shown(*arguments: str) -> str:
        command = [*COMMAND, "predict", str(run), "--head", "é1", "--relation", "père", *arguments]
        done = subprocess.run(command, capture_output=True, check=False, env=plain)
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
        return done.stdout.decode("ascii")

    assert "?1" in shown("--top", "2")
    assert json.loads(shown("--top", "2", "--json"))[0]["head"] == "é1"
    wrong = subprocess.run([*COMMAND, "predict", str(run), "--head", "ü"], capture_output=True, check=False, env=plain)
    assert (wrong.returncode, wrong.stderr[:6]) == (1, b"Error:")


def test_options_for_reading_reach_the_reader(write: Write, run: Path) -> None:
    path = write("g.tsv", "# people\nanna \tpère\tben\nben\tpère\tcleo\n")
    refused = kgcf("datasets", "info", path)
    assert refused.returncode == 1
    assert "line 1: '# people' is no triple. It looks like a comment" in " ".join(refused.stderr.split())
    done = kgcf("datasets", "info", path, "--comment", "#", "--strip", "--json")
    assert json.loads(done.stdout)["entities"] == 3
    question = ("predict", run, "--head", "anna", "--relation", "père", "--graph", path)
    assert kgcf(*question).returncode == 1
    answered = kgcf(*question, "--comment", "#", "--strip")
    assert answered.returncode == 0, answered.stderr
    assert "cleo" in answered.stdout
    assert "note: g.tsv: spaces around 'anna ' stripped" in answered.stderr


def begun(process: subprocess.Popen[str]) -> bool:
    """Whether the interpreter has read our entry module: before that, no line of ours has run."""
    caught = Path(f"/proc/{process.pid}/status").read_text().partition("SigCgt:")[2].split()[0]
    return bool(int(caught, 16) & (1 << (signal.SIGINT - 1)))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see when Python has started")
@pytest.mark.parametrize("moment", [0.15, 0.4, 0.8, 1.4, 2.5])
def test_interrupts_are_quiet_at_every_moment(moment: float, tmp_path: Path) -> None:
    command = [*COMMAND, "counterfactuals", "world", "--no-cache", "--json"]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    while not begun(process):
        time.sleep(0.005)
    time.sleep(max(0.1, moment - (time.monotonic() - started)))
    process.send_signal(signal.SIGINT)
    shown, said = process.communicate(timeout=60)
    assert (process.returncode, shown) == (130, "")
    assert said.endswith("Stopped.\n")
    assert "Traceback" not in said
    assert "Exception" not in said


def test_an_ignored_interrupt_stays_ignored() -> None:
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'trap "" INT; exec {sys.executable} -m kgcf --version'], stdout=subprocess.PIPE, text=True
    )
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    assert process.communicate()[0].startswith("kgcf ")
    assert process.returncode == 0
