"""An explanation as one HTML file that needs nothing else: answer, paths with switches, graph, pair, details."""

import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from kgcf.explanation.explanation import Explanation
from kgcf.explanation.page_detail import detail_of_deletion, detail_of_paths, detail_of_treatments
from kgcf.explanation.page_html import cut_names, escape_text, named, paragraphs, track
from kgcf.explanation.page_paths import list_legend, list_paths
from kgcf.explanation.palette import color_rules
from kgcf.explanation.words import answer_sentences, chance, pair_sentences, sure_sentence
from kgcf.explanation.words_in_detail import beside_sentences
from kgcf.storage import write_text

_CHOSEN = {
    "removal": "that the score needs or that give it by themselves",
    "gradient": "whose edges have the largest gradients",
    "integrated": "whose edges have the largest integrated gradients",
}


def write_page(explanation: Explanation, path: Path) -> None:
    """Write the page atomically."""
    write_text(path, render_page(explanation))


def render_page(explanation: Explanation) -> str:
    """The page as text; style, script and the drawing library are part of it."""
    e = cut_names(explanation)
    data = json.dumps(explanation.to_json(), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    parts = {
        "title": escape_text(e.triple),
        "style": f"{color_rules()}\n{_asset('page.css')}",
        "question": f'{named(e.head)} <span class="arrow">—{named(e.relation)}→</span> {named(e.tail)}',
        "answer": _answer(e),
        "legend": list_legend(e),
        "graph_text": escape_text("; ".join(str(path) for path in e.paths) or "no path"),
        "heading": "Because" if e.reasons else "Why",
        "paths": list_paths(e),
        "beside": _beside(e),
        "pair": paragraphs(pair_sentences(e)),
        "detail_of_paths": detail_of_paths(e),
        "detail_of_treatments": detail_of_treatments(e),
        "detail_of_deletion": detail_of_deletion(e),
        "chosen": _CHOSEN[e.attribution],
        "weighting": e.weighting,
        "importance": "integrated gradient" if e.attribution == "integrated" else "gradient",
        "layers": "in the layer of its step" if e.layers == "own" else "summed over all layers",
        "data": data,
        "library": _asset("cytoscape.min.js"),
        "script": _asset("page.js"),
    }
    return _fill(_asset("page.html"), parts)


def _answer(explanation: Explanation) -> str:
    """How likely, as a figure and as a bar; what was hidden; how sure."""
    likely = paragraphs([f"probability {chance(explanation.probability)}"], "big")
    known = [*answer_sentences(explanation)][1:]  # the first repeats the question
    return f"{likely}\n{track(explanation.probability)}\n{paragraphs([*known, sure_sentence(explanation)])}"


def _beside(explanation: Explanation) -> str:
    """What says something beside the paths, as a section; nothing where nothing does."""
    found = paragraphs(beside_sentences(explanation))
    title = "Paths and memory" if explanation.memory is not None else "Other runs"
    return f'<section id="beside-panel">\n<h2>{title}</h2>\n{found}\n</section>' if found else ""


def _fill(template: str, parts: Mapping[str, str]) -> str:
    """Replace every {{name}} of the template once; what is filled in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found.group(1)], template)


def _asset(name: str) -> str:
    return (resources.files("kgcf.explanation") / "assets" / name).read_text(encoding="utf-8")
