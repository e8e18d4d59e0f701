"""An explanation as one HTML file that needs nothing else: answer, graph of paths, counterfactual, deletion check."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from html import escape as escape_html
from importlib import resources
from pathlib import Path
from typing import TypeVar, cast

from kgcf.data.vocabulary import Named
from kgcf.explanation.counterfactual import CounterfactualEvidence, Substitute
from kgcf.explanation.deletion import Deletion
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.memory_evidence import memory_sentences, run_sentences
from kgcf.explanation.named_paths import NamedPath
from kgcf.explanation.palette import color_rules, line_style
from kgcf.explanation.words import (
    answer_sentences,
    counterfactual_sentences,
    deletion_sentences,
    missing_path_sentences,
)
from kgcf.screen import inert
from kgcf.storage import write_text

_REMOVED = {"top": "strongest path", "random": "random path, same length", "shortest": "shortest path"}
_UNBREAKABLE = re.compile(r"(\S{25,})")
_SWATCH = '<span class="swatch"></span>'
_LONGEST = 120  # characters of a name that are shown; the data of the page have all of it
Part = TypeVar("Part")


def write_page(explanation: Explanation, path: Path) -> None:
    """Write the page atomically."""
    write_text(path, render_page(explanation))


def render_page(explanation: Explanation) -> str:
    """The page as text; style, script and the drawing library are part of it."""
    e = _cut_names(explanation)
    data = json.dumps(explanation.to_json(), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    parts = {
        "title": escape_text(e.triple),
        "style": f"{color_rules()}\n{_asset('page.css')}",
        "question": f'{_named(e.head)} <span class="arrow">—{_named(e.relation)}→</span> {_named(e.tail)}',
        "answer": _paragraphs(answer_sentences(e), "big")
        + _paragraphs((*memory_sentences(e.memory, e.relation), *run_sentences(e.runs))),
        "legend": _legend(e),
        "graph_text": escape_text("; ".join(str(path) for path in e.paths) or "no path"),
        "paths": _paths(e),
        "counterfactual": _counterfactual(e),
        "deletion": _deletion(e),
        "weighting": e.weighting,
        "attribution": "gradient" if e.attribution == "gradient" else "integrated gradient",
        "layers": "in the layer of its step" if e.layers == "own" else "summed over all layers",
        "data": data,
        "library": _asset("cytoscape.min.js"),
        "script": _asset("page.js"),
    }
    return _fill(_asset("page.html"), parts)


def escape_text(text: str) -> str:
    """A text from data as HTML that shows it: tags, control characters and directional overrides have no effect."""
    return escape_html(inert(text))


def escape(text: str) -> str:
    """The same for the body of the page, where only strings that a line can hardly hold may be broken inside."""
    words = _UNBREAKABLE.split(inert(text))  # every second one is such a string
    return "".join(
        f'<span class="long">{escape_html(word)}</span>' if i % 2 else escape_html(word) for i, word in enumerate(words)
    )


def _cut_names(part: Part) -> Part:
    """The same part of an explanation, with very long names and labels cut."""
    if isinstance(part, Named):
        return replace(part, label=_cut(part.label), name=_cut(part.name))
    if isinstance(part, tuple):
        return cast(Part, tuple(_cut_names(item) for item in part))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: _cut_names(getattr(part, field.name)) for field in fields(part)})
    return part


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _named(entity: Named) -> str:
    """A name and, small behind it, the label where that is something else."""
    label = f' <span class="label">{escape(entity.label)}</span>' if entity.label != entity.name else ""
    return f"{_isolated(entity.name)}{label}"


def _isolated(text: str) -> str:
    """A name that may be written from right to left, without an effect on the order of what stands beside it."""
    return f"<bdi>{escape(text)}</bdi>"


def _fill(template: str, parts: Mapping[str, str]) -> str:
    """Replace every {{name}} of the template once; what is filled in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found.group(1)], template)


def _asset(name: str) -> str:
    return (resources.files("kgcf.explanation") / "assets" / name).read_text(encoding="utf-8")


def _paragraphs(lines: Iterable[str], kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return "\n".join(f"<p{attribute}>{escape(line)}</p>" for line in lines)


def _paths(explanation: Explanation) -> str:
    strongest = max((abs(path.weight) for path in explanation.paths), default=0.0) or 1.0
    items = [_path_item(number, path, strongest) for number, path in enumerate(explanation.paths, start=1)]
    listed = f'<ol class="paths">\n{"".join(items)}</ol>\n' if items else ""
    return listed + _paragraphs(missing_path_sentences(explanation))


def _path_item(number: int, path: NamedPath, strongest: float) -> str:
    width = round(70 * abs(path.weight) / strongest)
    sign = " negative" if path.weight < 0 else ""
    return (
        f'<li tabindex="0"{_line_style(number)}><span class="number">{_SWATCH}{number}</span>'
        f'<span class="weight">{path.weight:+.4f}<span class="bar{sign}" style="width:{width}px"></span></span>'
        f'<span class="line">{_line(path)}</span></li>\n'
    )


def _legend(explanation: Explanation) -> str:
    """Which line of the drawing is which path; a button singles it out."""
    buttons = (
        f'<button type="button" class="path"{_line_style(number)} title="{escape_text(str(path))}">'
        f"{_SWATCH}{number}</button>"
        for number, path in enumerate(explanation.paths, start=1)
    )
    return "\n".join(buttons)


def _line_style(number: int) -> str:
    """The attributes from which style and script take the line of a path."""
    style = line_style(number - 1)
    return f' data-dash="{style.dash}" style="--path:var(--path-{style.color});--dash:{style.dash}"'


def _line(path: NamedPath) -> str:
    parts = [_isolated(path.edges[0].head.shown)]
    for edge in path.edges:
        badge = ""
        if edge.factual_treatment is not None and edge.counterfactual_treatment is not None:
            treatments = f"T {int(edge.factual_treatment)} · T<sup>CF</sup> {int(edge.counterfactual_treatment)}"
            badge = f' <span class="badge">{treatments}</span>'
        relation = _isolated(edge.relation.shown)
        arrow = f"←{relation}—" if edge.inverse else f"—{relation}→"
        parts.append(f'<span class="arrow">{arrow}</span>{badge} {_isolated(edge.tail.shown)}')
    return " ".join(parts)


def _counterfactual(explanation: Explanation) -> str:
    """What the model says of the triple under both treatments; then the other pair, of which the data speak."""
    evidence = explanation.counterfactual
    text = _paragraphs(counterfactual_sentences(explanation))
    if evidence is None:
        return text
    return f"{_treatments(explanation, evidence)}\n{_other_pair(explanation, evidence.substitute)}\n{text}"


def _treatments(explanation: Explanation, evidence: CounterfactualEvidence) -> str:
    """The triple itself, as it is and under the other treatment."""
    own = evidence.factual_treatment
    rows = (
        ("as it is", own, evidence.factual_probability),
        ("under the other treatment", not own, evidence.other_probability),
    )
    body = "".join(
        f'<tr><th>{kind}</th><td class="figure">{int(treated)}</td><td class="figure">{probability:.3f}</td>'
        f"{_track(probability)}</tr>"
        for kind, treated, probability in rows
    )
    head = '<tr><th></th><th class="figure">T</th><th class="figure">its probability</th><th class="share"></th></tr>'
    caption = f"<caption>The model on {escape(explanation.triple)}</caption>"
    return (
        f'<div class="scroll"><table id="treatments">{caption}<thead>{head}</thead><tbody>{body}</tbody></table></div>'
    )


def _other_pair(explanation: Explanation, pair: Substitute | None) -> str:
    """The nearest pair with the other treatment: a fact of the graph, no probability."""
    if pair is None:
        return ""
    head_name, relation, tail_name = (_isolated(part.shown) for part in (pair.head, explanation.relation, pair.tail))
    triple = f"{head_name} —{relation}→ {tail_name}"
    known = "yes" if pair.known else "no"
    head = (
        '<tr><th></th><th class="figure">T</th><th class="figure">distance</th>'
        '<th class="figure">in the observed graph</th></tr>'
    )
    row = (
        f'<tr><td>{triple}</td><td class="figure">{int(pair.factual_treatment)}</td>'
        f'<td class="figure">{pair.distance:.3f}</td><td class="figure">{known}</td></tr>'
    )
    caption = "<caption>The nearest other pair that has the other treatment</caption>"
    return (
        f'<div class="scroll"><table id="other-pair">{caption}<thead>{head}</thead><tbody>{row}</tbody></table></div>'
    )


def _deletion(explanation: Explanation) -> str:
    if not explanation.deletion:
        return "<p>There is no path to remove.</p>"
    head = (
        '<tr><th>removed</th><th class="figure">logit</th><th class="figure">drop</th>'
        '<th class="figure">probability</th><th class="share"></th></tr>'
    )
    before = (
        f'<tr><th>nothing</th><td class="figure">{explanation.logit:.3f}</td><td class="figure"></td>'
        f'<td class="figure">{explanation.probability:.3f}</td>{_track(explanation.probability)}</tr>'
    )
    rows = "".join(_deletion_row(deletion) for deletion in explanation.deletion)
    table = f'<div class="scroll"><table><thead>{head}</thead><tbody>{before}{rows}</tbody></table></div>'
    return f"{table}\n{_paragraphs(deletion_sentences(explanation))}"


def _deletion_row(deletion: Deletion[NamedPath]) -> str:
    path = escape_text(str(deletion.path))
    return (
        f'<tr data-removed="{deletion.removed}" title="{path}"><th>{_REMOVED[deletion.removed]}</th>'
        f'<td class="figure">{deletion.logit:.3f}</td><td class="figure">{deletion.drop:+.3f}</td>'
        f'<td class="figure">{deletion.probability:.3f}</td>{_track(deletion.probability)}</tr>'
    )


def _track(share: float) -> str:
    return f'<td class="share"><span class="track"><span style="width:{100 * share:.1f}%"></span></span></td>'
