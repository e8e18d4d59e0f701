"""Run the commands in our documents and keep the output that stands below them true.

Documents mark a session with a fence ```console; every line that begins with `$ ` is a command, the
lines after it are its output. `python scripts/document.py` runs the commands and rewrites the output;
`--check` compares instead, and fails with a difference. Words must agree to the letter. In a fence
```console varying numbers may differ (times, results that depend on the machine); in a fence ```console learned
a trained model speaks, and may say something else on another machine: there every command must succeed or fail as
documented, begin with the same word up to numbers, and print about as many lines.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "docs/*.md")
_FENCE = re.compile(r"^```console(?: (?P<kind>varying|learned))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_SECONDS = re.compile(r"\b\d+(\.\d+)? ?(ms|s|seconds|minutes)\b")
_NUMBER = re.compile(r"-?\d[\d.,]*")
_RUNNABLE = ("kgcf ", "cat ", "head ", "ls ", "printf ")


@dataclass(frozen=True)
class Session:
    """One fenced block: its commands, and the text between them."""

    document: Path
    start: int
    end: int
    body: str
    kind: str  # "": to the letter; "varying": up to numbers; "learned": by outline

    def commands(self) -> list[str]:
        """The commands, in order."""
        return [line[2:] for line in self.body.splitlines() if line.startswith("$ ")]


def sessions(document: Path) -> Iterator[Session]:
    """The sessions of a document whose commands we can run."""
    for match in _FENCE.finditer(document.read_text(encoding="utf-8")):
        session = Session(document, match.start("body"), match.end("body"), match["body"], match["kind"] or "")
        if all(command.startswith(_RUNNABLE) for command in session.commands()):
            yield session


def run(session: Session, folder: Path) -> str:
    """The session as it reads when its commands are run now, in `folder`."""
    parts: list[str] = []
    environment = os.environ | {
        "COLUMNS": "100",
        "KGCF_TABLES": "people",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONWARNINGS": "error",
    }
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment["KGCF_CACHE"] = str(folder / ".cache")
    for command in session.commands():
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        shown = done.stdout + done.stderr
        if "Traceback" in shown:
            raise SystemExit(f"{session.document}: '{command}' failed:\n{shown}")
        parts.append(f"$ {command}\n" + "".join(line.rstrip() + "\n" for line in shown.splitlines()))
    return "".join(parts)


def agrees(session: Session, fresh: str) -> bool:
    """Whether the documented output is current."""
    if session.kind == "learned":
        old, new = _outline(session.body), _outline(fresh)
        about = all(abs(a[-1] - b[-1]) <= max(3, 0.3 * a[-1]) for a, b in zip(old, new, strict=False))
        return about and [entry[:-1] for entry in old] == [entry[:-1] for entry in new]
    mask = _NUMBER if session.kind == "varying" else _SECONDS
    return _masked(mask, session.body) == _masked(mask, fresh)


def _outline(text: str) -> list[tuple[str, str, bool, int]]:
    """(command, first word of its output up to numbers, whether it failed, number of lines) of every command."""
    found = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        word = _masked(_NUMBER, " ".join(lines)).split(maxsplit=1)[:1]
        found.append((command, word[0] if word else "", any(line.startswith("Error:") for line in lines), len(lines)))
    return found


def _masked(pattern: re.Pattern[str], text: str) -> str:
    lines = (re.sub(r"[ ─━┄-]{2,}", " ", pattern.sub("#", line)).rstrip() for line in text.splitlines())
    return "\n".join(lines)


def process(document: Path, check: bool, every: bool = False) -> bool:
    """Check or rewrite one document: what is out of date, or `every` session. They share a scratch folder."""
    text = document.read_text(encoding="utf-8")
    current = True
    scratch = Path(tempfile.mkdtemp(prefix="kgcf-docs-"))
    try:
        for session in reversed([(s, run(s, scratch)) for s in sessions(document)]):
            old, fresh = session
            if agrees(old, fresh):
                if every:
                    text = text[: old.start] + fresh + text[old.end :]
                continue
            current = False
            if check:
                before, after = old.body.splitlines(), fresh.splitlines()
                print(*difflib.unified_diff(before, after, str(document), "now", lineterm=""), sep="\n")
            text = text[: old.start] + fresh + text[old.end :]
    finally:
        shutil.rmtree(scratch)
    if not check:
        document.write_text(text, encoding="utf-8")
    return current


def main() -> None:
    """Go through all documents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 if anything is out of date")
    parser.add_argument("--every", action="store_true", help="rewrite every output, also what agrees in outline")
    parser.add_argument("documents", nargs="*", type=Path, help="only these documents")
    arguments = parser.parse_args()
    found = arguments.documents or sorted(path for pattern in DOCUMENTS for path in ROOT.glob(pattern))
    stale = [path for path in found if not process(path, arguments.check, arguments.every)]
    for path in stale:
        print(f"{path}: {'out of date; run `make docs`' if arguments.check else 'rewritten'}")
    sys.exit(1 if stale and arguments.check else 0)


if __name__ == "__main__":
    main()
