"""The page of an explanation as a part of ours: its body, its style within bounds, its scripts as files.

`kgcf.explanation.page` writes one file that needs nothing else. Here the same text is taken apart, so that no script
is inline: what it draws and says stays what it is there, whatever that comes to be.
"""

import hashlib
import re
from dataclasses import dataclass

from kgcf.explanation.explanation import Explanation
from kgcf.explanation.page import render_page

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_BODY = re.compile(r"<body[^>]*>(.*)</body>", re.DOTALL)
_SCRIPT = re.compile(r"<script>(.*?)</script>\s*", re.DOTALL)  # not those of data, which have a type
_ROOT = re.compile(r"(?:(@media[^{}]*)\{\s*)?:root\s*\{([^{}]*)\}(?(1)\s*\})")
_WHOLE = re.compile(r"(?<![\w.#-])(?:body|:root)(?=[\s,{])")
CONTAINER = "why"  # the id of the element that holds the body

_files: dict[str, str] = {}  # by name: the few texts that all explanations share


@dataclass(frozen=True)
class ExplanationParts:
    """What a page needs to show an explanation."""

    body: str  # HTML
    style: str  # names of files
    scripts: tuple[str, ...]


def take_apart(explanation: Explanation) -> ExplanationParts:
    """The page of an explanation in parts."""
    page = render_page(explanation)
    style, body = _STYLE.search(page), _BODY.search(page)
    assert style is not None
    assert body is not None
    scripts = tuple(_keep(text, "js") for text in _SCRIPT.findall(body[1]))
    return ExplanationParts(_SCRIPT.sub("", body[1]), _keep(bounded(style[1]), "css"), scripts)


def bounded(style: str) -> str:
    """The style for what is inside the container alone; its variables are everybody's, and may be set anew."""
    variables = [f"{media} {{ {rule} }}" if media else rule for media, rule in map(_variables, _ROOT.finditer(style))]
    rest = _WHOLE.sub(":scope", _ROOT.sub("", style))
    return "\n".join([*variables, f"@scope (#{CONTAINER}) {{", rest, "}"])


def file(name: str) -> str | None:
    """The text of a shared file; None where there is none."""
    return _files.get(name)


def _variables(found: re.Match[str]) -> tuple[str, str]:
    return (found[1] or "").strip(), f":root {{{found[2]}}}"


def _keep(text: str, ending: str) -> str:
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.{ending}"
    _files[name] = text
    return name
