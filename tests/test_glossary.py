"""Every column that a command prints is explained in docs/glossary.md."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import kgcf

SOURCE = Path(kgcf.__file__).parent
ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((SOURCE / "cli").glob("*.py"))
BUILDERS = ("Column", "add_column")  # calls whose first argument is the title of a column
REPORTS = ("report_table", "_breakdown")  # calls whose second argument has titles; the first is that of the table


def texts(node: ast.AST) -> Iterator[str]:
    """The texts that are written out in a piece of code."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def titles(tree: ast.Module) -> Iterator[str]:
    """What columns are called: arguments of the calls that make them, and the loops around such calls."""
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
        if isinstance(node, ast.Call) and name in (*BUILDERS, *REPORTS):
            yield from texts(node.args[1 if name in REPORTS else 0])
        if isinstance(node, ast.For) and any(f"{call}(" in ast.unparse(node) for call in BUILDERS):
            yield from texts(node.iter)
    for node in ast.walk(tree):  # the rows of `kgcf compare`, and titles that have a name
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "titles" for t in node.targets):
            yield from texts(node.value)
        if isinstance(node, ast.FunctionDef) and node.name == "_column":
            found = (key for part in ast.walk(node) if isinstance(part, ast.Dict) for key in part.keys if key)
            yield from (text for key in found for text in texts(key))


def explained() -> str:
    """The words that the glossary explains: the first cells of its tables, a line each."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").replace("\\|", "¦").replace("*", "")
    cells = (line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|"))
    return "\n".join(cells).replace("¦", "|").lower()


def missing(words: Iterable[str]) -> list[str]:
    """Those that are not explained."""
    known = explained()
    return sorted(word for word in words if not re.search(rf"(?<!\w){re.escape(word.lower())}(?!\w)", known))


def test_every_column_is_in_the_glossary() -> None:
    found = {title for path in MODULES for title in titles(ast.parse(path.read_text(encoding="utf-8"))) if title}
    assert {"probability", "entities", "MRR", "ECE", "T = 1", "validation MRR", "weight", "α, β"} <= found
    assert missing(found) == []


def test_the_words_of_explanations_are_in_the_glossary() -> None:
    assert (
        missing(["treatment", "neighbourhood role", "ITE", "distance", "logit", "path", "weight", "substitute"]) == []
    )
    assert missing(["isotonic", "platt", "sigmoid", "known", "unseen", "T^F", "T^CF", "placebo", "nonsense"]) == [
        "nonsense"
    ]
