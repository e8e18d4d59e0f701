"""The documents are one site: links lead somewhere, named modules and files exist, lines have an ordinary width."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES = sorted((ROOT / "docs").glob("*.md"))
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_MODULE = re.compile(r"(?<![\w/.:])kgcf((?:\.[A-Za-z_]\w*)+)")
_PATH = re.compile(
    r"(?<![\w/.*…-])([\w.-]+(?:/[\w.-]+)*\.py|(?:src|tests|scripts|benchmarks|results)/[\w./-]*\w)(?![\w*…-])"
)
_FOLDERS = ("src", "tests", "scripts", "benchmarks", "docs", "results")


def by_name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


every_document = pytest.mark.parametrize("document", [*DOCUMENTS, *PAGES], ids=by_name)
every_page = pytest.mark.parametrize("page", PAGES, ids=by_name)


@cache
def files() -> tuple[str, ...]:
    """Every file of the repository, from its root."""
    found = (path for folder in _FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts)
    return tuple(f"/{path.relative_to(ROOT).as_posix()}" for path in found)


def anchors(document: Path) -> set[str]:
    """The headings of a document, as GitHub makes links of them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def prose(document: Path) -> Iterator[tuple[int, str]]:
    """The lines that are neither code nor rows of a table, with their numbers."""
    fenced = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith("|"):
            yield number, line


def missing_links(document: Path) -> list[str]:
    missing = []
    for link in _LINK.findall(document.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    return missing


def missing_modules(text: str) -> list[str]:
    """Names such as kgcf.data.hiding whose module, or whose last part within the module, does not exist."""
    missing = []
    for dotted in _MODULE.findall(text):
        place, parts = ROOT / "src" / "kgcf", dotted[1:].split(".")
        while parts and (place / parts[0]).is_dir():
            place /= parts.pop(0)
        if parts and (place / f"{parts[0]}.py").exists():
            place = place / f"{parts.pop(0)}.py"
        source = place if place.is_file() else place / "__init__.py"
        if parts and not re.search(rf"\b{parts[0]}\b", source.read_text(encoding="utf-8")):
            missing.append(f"kgcf{dotted}")
    return missing


def missing_paths(text: str) -> list[str]:
    """Files that nothing in the repository ends with: `hiding.py` and `data/hiding.py` are enough of a path."""
    return [path for path in _PATH.findall(text) if not any(name.endswith(f"/{path}") for name in files())]


@every_document
def test_links_lead_somewhere(document: Path) -> None:
    assert missing_links(document) == []


@every_document
def test_named_modules_and_files_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert missing_modules(text) == []
    assert missing_paths(text) == []


@every_page
def test_lines_have_an_ordinary_width(page: Path) -> None:
    assert [(number, len(line)) for number, line in prose(page) if len(line) > 120] == []


@every_page
def test_a_page_says_what_it_answers_and_where_to_go_on(page: Path) -> None:
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert lines[0].startswith("# ")
    assert lines[1][0] not in "#|`-!"
    if page.stem not in ("index", "glossary"):
        assert re.match(r"Next: \[.*\]\(\w+\.(md|ipynb)\)", lines[-1])


def test_every_page_is_in_the_index() -> None:
    listed = _LINK.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    assert [page.name for page in PAGES if page.name not in (*listed, "index.md")] == []


def test_nothing_refers_to_a_paper_outside_the_repository() -> None:
    texts = {
        path: (ROOT / path[1:]).read_text(encoding="utf-8")
        for path in files()
        if path.endswith((".py", ".md", ".toml")) and path != f"/{by_name(Path(__file__))}"
    }
    assert [path for path, text in texts.items() if re.search(r"\bDESIGN\b", text)] == []


def test_what_is_missing_is_found() -> None:
    assert missing_modules("`kgcf.data.hiding`, kgcf.fit, `kgcf.data.hidden`, kgcf.causal.treatment.nobody") == [
        "kgcf.data.hidden",
        "kgcf.causal.treatment.nobody",
    ]
    assert missing_paths("`data/hiding.py`, `hiding.py`, src/kgcf/data, `data/hidden.py`, `results/nothing.json`") == [
        "data/hidden.py",
        "results/nothing.json",
    ]
    assert anchors(ROOT / "docs" / "engine.md") >= {"what-exact-means", "the-plan"}
