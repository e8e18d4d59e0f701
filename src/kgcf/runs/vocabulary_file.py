"""entities.txt and relations.txt of a run: one label a line, its display name behind a tab."""

from collections.abc import Iterable
from pathlib import Path

from kgcf.data.vocabulary import Vocabulary


def vocabulary_lines(vocabulary: Vocabulary) -> str:
    """One label a line, with its display name after a tab where it has one."""
    names = vocabulary.names
    return "".join(
        _escaped(label) + (f"\t{_escaped(names[label])}" if label in names else "") + "\n"
        for label in vocabulary.labels()
    )


def read_vocabulary(path: Path) -> Vocabulary:
    """What `vocabulary_lines` made."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    labels = [_restored(row[0]) for row in rows]
    names = {label: _restored(row[1]) for label, row in zip(labels, rows, strict=True) if len(row) > 1}
    return Vocabulary(labels, names)


_ESCAPES: Iterable[tuple[str, str]] = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))


def _escaped(text: str) -> str:
    for plain, code in _ESCAPES:
        text = text.replace(plain, code)
    return text


def _restored(text: str) -> str:
    if "\\" not in text:
        return text
    pieces = text.split("\\\\")
    for plain, code in list(_ESCAPES)[1:]:
        pieces = [piece.replace(code, plain) for piece in pieces]
    return "\\".join(pieces)
