"""How the line of a path is drawn: a colour and, from the ninth path on, also dashes; the same in page and picture."""

from dataclasses import dataclass
from typing import Literal

Dash = Literal["solid", "dashed", "dotted"]
LIGHT = ("#1f6feb", "#d1480f", "#15803d", "#7c3aed", "#c2187a", "#0b7a8a", "#946200", "#55606f")
DARK = ("#6ea8fe", "#ff8a5c", "#4cc77a", "#b79bff", "#f279b8", "#4fc8d6", "#e3b341", "#a9b4c4")
DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted")


@dataclass(frozen=True)
class LineStyle:
    """The line of one path; `color` is a position in LIGHT and DARK."""

    color: int
    dash: Dash


def line_style(lane: int) -> LineStyle:
    """The line of the path at this position of the list, counted from 0: eight colours, then the same with dashes."""
    return LineStyle(lane % len(LIGHT), DASHES[lane // len(LIGHT) % len(DASHES)])


def color_rules() -> str:
    """The colours as CSS variables, --path-0 to --path-7, for light and for dark screens."""
    light, dark = ("".join(f" --path-{i}: {color};" for i, color in enumerate(colors)) for colors in (LIGHT, DARK))
    return f":root {{{light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{{dark} }} }}"
