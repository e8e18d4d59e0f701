"""Wrong files and names through the real command line: a sentence on standard error, exit 1, no traceback."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str, str | bytes], Path]


def kgcf(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kgcf", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("columns.tsv", "a\tr\tb\nc\tr\n", "columns.tsv, line 2: 2 columns where the first line has 3"),
        ("label.tsv", "a\tr\tb\nc\tr\t\n", "label.tsv, line 2: the tail is empty"),
        ("encoding.tsv", b"a\tr\tb\nc\tr\t\xff\n", "encoding.tsv, line 2: byte 0xff is not valid UTF-8"),
        ("cut.tsv.gz", gzip.compress(b"a\tr\tb\n" * 9999, mtime=0)[:60], "cut.tsv.gz is damaged or cut short"),
        ("empty.tsv", "", "empty.tsv is empty"),
        ("folder/notes.md", "hello", "is a folder without a train file"),
    ],
)
def test_bad_files(write: Write, name: str, content: str | bytes, message: str) -> None:
    path = write(name, content)
    target = path.parent if name.startswith("folder/") else path
    done = kgcf("datasets", "info", target)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_unknown_name_gets_a_suggestion() -> None:
    done = kgcf("datasets", "info", "umsl")
    assert done.returncode == 1
    assert "no file, folder or benchmark called 'umsl'. Did you mean 'umls'" in " ".join(done.stderr.split())


def test_duplicates_and_unseen_entities_are_counted_not_refused(write: Write) -> None:
    write("g/train.txt", "a\tr\tb\na\tr\tb\nb\tr\tc\n")
    folder = write("g/test.txt", "a\tr\tnew\n").parent
    done = kgcf("evaluate", folder)
    assert done.returncode == 0
    assert "1 repeated triple of train left out" in done.stderr
    assert "1 of 1 test triples ask about an entity without a train triple" in done.stderr
    assert "frequency" in done.stdout


def test_an_unknown_option_is_a_usage_error() -> None:
    done = kgcf("evaluate", "world", "--limit", "0")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
