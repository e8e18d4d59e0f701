"""Draw docs/layers.svg: the way of the data, from the import contract in pyproject.toml and the packages' docstrings.

`python scripts/draw_layers.py` writes the picture; `--check` fails if the committed one is no longer true.
"""

import ast
import html
import sys
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "layers.svg"
WIDTH, MARGIN, GAP, LINE, TITLE = 860, 16, 26, 17, 24
LETTER = 6.8  # pixels that a letter of the text takes, on average, with some to spare
STYLE = """
  text { font-family: "DejaVu Sans", Verdana, sans-serif; fill: #1b1f24; }
  .name { font-size: 14px; font-weight: bold; } .text { font-size: 12px; fill: #444c56; }
  rect { fill: #f3f6f8; stroke: #8aa0b2; rx: 6px; } path { stroke: #8aa0b2; stroke-width: 1.5; fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .text { fill: #adbac7; } rect { fill: #22272e; stroke: #637b8f; }
  }
"""


def main() -> None:
    """Write the picture, or compare it with the one that is there."""
    drawn = draw(read_layers())
    if "--check" not in sys.argv:
        PICTURE.write_text(drawn, encoding="utf-8")
        return
    if not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != drawn:
        sys.exit(f"{PICTURE.relative_to(ROOT)} is not what the import contract says. Run: make docs")


def read_layers() -> list[list[str]]:
    """The layers of the first contract, lowest first; modules of one layer do not import each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in reversed(layers)]


def join_foundations(layers: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The small modules below `data`, which everybody uses, and the layers from `data` on."""
    first = layers.index(["kgcf.data"])
    return [name for layer in layers[:first] for name in layer], layers[first:]


def describe(module: str) -> str:
    """The first sentence of a module's docstring."""
    path = ROOT / "src" / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def draw(layers: list[list[str]]) -> str:
    """One row of boxes per layer, the data at the top, people at the bottom."""
    foundations, storeys = join_foundations(layers)
    small = "Small things that everybody uses: " + ", ".join(name.removeprefix("kgcf.") for name in foundations) + "."
    rows = [[("", small)], *([(name.removeprefix("kgcf."), describe(name)) for name in layer] for layer in storeys)]
    shapes: list[str] = []
    top: float = MARGIN
    for number, row in enumerate(rows):
        width = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / len(row)
        texts = [textwrap.wrap(text.replace("`", ""), int((width - 24) / LETTER)) for _, text in row]
        height = (TITLE if row[0][0] else 4) + LINE * max(map(len, texts)) + 10
        for i, ((name, _), lines) in enumerate(zip(row, texts, strict=True)):
            shapes += _box(MARGIN + i * (width + GAP), top, width, height, name, lines)
        top += height
        if number < len(rows) - 1:
            shapes.append(f'<path d="M {WIDTH / 2:g} {top:g} v {GAP - 8}" marker-end="url(#arrow)"/>')
            top += GAP
    arrow = '<marker id="arrow" markerWidth="8" markerHeight="8" refX="4" refY="4" orient="auto">'
    arrow += '<path d="M 0 0 L 6 4 L 0 8" /></marker>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + MARGIN:g}" width="{WIDTH}" role="img">'
    title = "<title>The way of the data through kgcf: a lower box may import what stands above it.</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", f"<defs>{arrow}</defs>", *shapes, "</svg>", ""])


def _box(left: float, top: float, width: float, height: float, name: str, lines: list[str]) -> list[str]:
    shapes = [f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}"/>']
    if name:
        shapes.append(f'<text class="name" x="{left + 12:g}" y="{top + 20:g}">{html.escape(name)}</text>')
    for i, line in enumerate(lines):
        y = top + (20 if name else 2) + LINE * (i + 1)
        shapes.append(f'<text class="text" x="{left + 12:g}" y="{y:g}">{html.escape(line)}</text>')
    return shapes


if __name__ == "__main__":
    main()
