"""An explanation as one HTML file that needs nothing else: answer, graph of paths, counterfactual, deletion check."""

import json
import re
from collections.abc import Iterable, Mapping
from html import escape as escape_html
from importlib import resources
from pathlib import Path

from kgcf.data.vocabulary import Named
from kgcf.explanation.counterfactual import CounterfactualEvidence, Substitute
from kgcf.explanation.deletion import Deletion
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.named_paths import NamedPath
from kgcf.explanation.words import (
    answer_sentences,
    counterfactual_sentences,
    deletion_sentences,
    missing_path_sentences,
)
from kgcf.screen import inert
from kgcf.storage import write_text

_REMOVED = {"top": "strongest path", "random": "random path, same length", "shortest": "shortest path"}


def write_page(explanation: Explanation, path: Path) -> None:
    """Write the page atomically."""
    write_text(path, render_page(explanation))


def render_page(explanation: Explanation) -> str:
    """The page as text; style, script and the drawing library are part of it."""
    e = explanation
    data = json.dumps(e.to_json(), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    parts = {
        "title": escape(e.triple),
        "style": _asset("page.css"),
        "question": f'{_named(e.head)} <span class="arrow">—{_named(e.relation)}→</span> {_named(e.tail)}',
        "answer": _paragraphs(answer_sentences(e), "big"),
        "graph_text": escape("; ".join(str(path) for path in e.paths) or "no path"),
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


def escape(text: str) -> str:
    """A text from data as HTML that shows it: tags, control characters and directional overrides have no effect."""
    return escape_html(inert(text))


def _named(entity: Named) -> str:
    """A name and, small behind it, the label where that is something else."""
    label = f' <span class="label">{escape(entity.label)}</span>' if entity.label != entity.name else ""
    return f"{escape(entity.name)}{label}"


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
        f'<li tabindex="0"><span class="number">{number}</span><span class="weight">{path.weight:+.4f}'
        f'<span class="bar{sign}" style="width:{width}px"></span></span><span class="line">{_line(path)}</span></li>\n'
    )


def _line(path: NamedPath) -> str:
    parts = [escape(path.edges[0].head.shown)]
    for edge in path.edges:
        badge = ""
        if edge.factual_treatment is not None and edge.counterfactual_treatment is not None:
            treatments = f"T {int(edge.factual_treatment)} · T<sup>CF</sup> {int(edge.counterfactual_treatment)}"
            badge = f' <span class="badge">{treatments}</span>'
        parts.append(f'<span class="arrow">{escape(edge.arrow)}</span>{badge} {escape(edge.tail.shown)}')
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
        f"<td>{_track(probability)}</td></tr>"
        for kind, treated, probability in rows
    )
    head = '<tr><th></th><th class="figure">T</th><th class="figure">its probability</th><th></th></tr>'
    caption = f"<caption>The model on {escape(explanation.triple)}</caption>"
    return f'<table id="treatments">{caption}<thead>{head}</thead><tbody>{body}</tbody></table>'


def _other_pair(explanation: Explanation, pair: Substitute | None) -> str:
    """The nearest pair with the other treatment: a fact of the graph, no probability."""
    if pair is None:
        return ""
    triple = f"{escape(pair.head.shown)} —{escape(explanation.relation.shown)}→ {escape(pair.tail.shown)}"
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
    return f'<table id="other-pair">{caption}<thead>{head}</thead><tbody>{row}</tbody></table>'


def _deletion(explanation: Explanation) -> str:
    if not explanation.deletion:
        return "<p>There is no path to remove.</p>"
    head = (
        '<tr><th>removed</th><th class="figure">logit</th><th class="figure">drop</th>'
        '<th class="figure">probability</th><th></th></tr>'
    )
    before = (
        f'<tr><th>nothing</th><td class="figure">{explanation.logit:.3f}</td><td class="figure"></td>'
        f'<td class="figure">{explanation.probability:.3f}</td><td>{_track(explanation.probability)}</td></tr>'
    )
    rows = "".join(_deletion_row(deletion) for deletion in explanation.deletion)
    table = f"<table><thead>{head}</thead><tbody>{before}{rows}</tbody></table>"
    return f"{table}\n{_paragraphs(deletion_sentences(explanation))}"


def _deletion_row(deletion: Deletion[NamedPath]) -> str:
    path = escape(str(deletion.path))
    return (
        f'<tr data-removed="{deletion.removed}" title="{path}"><th>{_REMOVED[deletion.removed]}</th>'
        f'<td class="figure">{deletion.logit:.3f}</td><td class="figure">{deletion.drop:+.3f}</td>'
        f'<td class="figure">{deletion.probability:.3f}</td><td>{_track(deletion.probability)}</td></tr>'
    )


def _track(share: float) -> str:
    return f'<span class="track"><span style="width:{100 * share:.1f}%"></span></span>'
