"""Pieces of HTML for the page of an explanation: texts from data that only show, names, tables, bars."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from html import escape as escape_html
from typing import TypeVar, cast

from kgcf.data.vocabulary import Named
from kgcf.explanation.named_paths import NamedPath
from kgcf.explanation.palette import line_style
from kgcf.screen import inert

SWATCH = '<span class="swatch"></span>'
_UNBREAKABLE = re.compile(r"(\S{25,})")
_LONGEST = 120  # characters of a name that are shown; the data of the page have all of it
Part = TypeVar("Part")


def escape_text(text: str) -> str:
    """A text from data as HTML that shows it: tags, control characters and directional overrides have no effect."""
    return escape_html(inert(text))


def escape(text: str) -> str:
    """The same for the body of the page, where only strings that a line can hardly hold may be broken inside."""
    words = _UNBREAKABLE.split(inert(text))  # every second one is such a string
    return "".join(
        f'<span class="long">{escape_html(word)}</span>' if i % 2 else escape_html(word) for i, word in enumerate(words)
    )


def cut_names(part: Part) -> Part:
    """The same part of an explanation, with very long names and labels cut."""
    if isinstance(part, Named):
        return replace(part, label=_cut(part.label), name=_cut(part.name))
    if isinstance(part, tuple):
        return cast(Part, tuple(cut_names(item) for item in part))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: cut_names(getattr(part, field.name)) for field in fields(part)})
    return part


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def named(entity: Named) -> str:
    """A name and, small behind it, the label where that is something else."""
    label = f' <span class="label">{escape(entity.label)}</span>' if entity.label != entity.name else ""
    return f"{isolated(entity.name)}{label}"


def isolated(text: str) -> str:
    """A name that may be written from right to left, without an effect on the order of what stands beside it."""
    return f"<bdi>{escape(text)}</bdi>"


def paragraphs(lines: Iterable[str], kind: str = "") -> str:
    """Sentences, each a paragraph."""
    attribute = f' class="{kind}"' if kind else ""
    return "\n".join(f"<p{attribute}>{escape(line)}</p>" for line in lines)


def track(share: float, name: str = "") -> str:
    """A bar for a probability."""
    attribute = f' id="{name}"' if name else ""
    return f'<span class="track"{attribute}><span style="width:{100 * share:.1f}%"></span></span>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], name: str = "", caption: str = "") -> str:
    """A table that scrolls where it is too wide; the first cell of a row names it, the others hold figures.

    The cells are HTML already.
    """
    titles = "".join(f'<th class="figure">{title}</th>' if i else f"<th>{title}</th>" for i, title in enumerate(head))
    body = "".join(
        "<tr>" + "".join(f'<td class="figure">{c}</td>' if i else f"<th>{c}</th>" for i, c in enumerate(row)) + "</tr>"
        for row in rows
    )
    opening = f'<table id="{name}">' if name else "<table>"
    title = f"<caption>{caption}</caption>" if caption else ""
    return f'<div class="scroll">{opening}{title}<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def path_line(path: NamedPath, treatments: bool = False) -> str:
    """A path on one line, with the treatments of its edges where they are asked for."""
    parts = [isolated(path.edges[0].head.shown)]
    for edge in path.edges:
        badge = ""
        if treatments and edge.factual_treatment is not None and edge.counterfactual_treatment is not None:
            both = f"T {int(edge.factual_treatment)} · T<sup>CF</sup> {int(edge.counterfactual_treatment)}"
            badge = f' <span class="badge">{both}</span>'
        relation = isolated(edge.relation.shown)
        arrow = f"←{relation}—" if edge.inverse else f"—{relation}→"
        parts.append(f'<span class="arrow">{arrow}</span>{badge} {isolated(edge.tail.shown)}')
    return " ".join(parts)


def lane_style(number: int) -> str:
    """The attributes from which style and script take the line of the path of this number."""
    style = line_style(number - 1)
    return f' data-dash="{style.dash}" style="--path:var(--path-{style.color});--dash:{style.dash}"'
