"""An explanation as one HTML file that needs nothing else: answer, graph of paths, counterfactual, deletion check."""

import json
import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from pathlib import Path

from kgcf.explanation.explanation import Explanation, NamedDeletion, NamedPath
from kgcf.explanation.sentences import (
    answer_sentences,
    counterfactual_sentences,
    deletion_sentences,
    missing_path_sentences,
)
from kgcf.storage import write_text

_REMOVED = {"top": "strongest path", "random": "random path, same length", "shortest": "shortest path"}


def write_page(explanation: Explanation, path: Path) -> None:
    """Write the page atomically."""
    write_text(path, render_page(explanation))


def render_page(explanation: Explanation) -> str:
    """The page as text; style, script and the drawing library are part of it."""
    e = explanation
    question = f"{e.head.name} —{e.relation.name}→ {e.tail.name}"
    arrow = f"—{escape(e.relation.name)}→"
    data = json.dumps(e.to_json(), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    parts = {
        "title": escape(question),
        "style": _asset("page.css"),
        "question": f'{escape(e.head.name)} <span class="arrow">{arrow}</span> {escape(e.tail.name)}',
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
    parts = [escape(path.edges[0].head.name)]
    for edge in path.edges:
        badge = ""
        if edge.factual_treatment is not None and edge.counterfactual_treatment is not None:
            treatments = f"T {int(edge.factual_treatment)} · T<sup>CF</sup> {int(edge.counterfactual_treatment)}"
            badge = f' <span class="badge">{treatments}</span>'
        parts.append(f'<span class="arrow">{escape(edge.arrow)}</span>{badge} {escape(edge.tail.name)}')
    return " ".join(parts)


def _counterfactual(explanation: Explanation) -> str:
    evidence = explanation.counterfactual
    text = _paragraphs(counterfactual_sentences(explanation))
    if evidence is None:
        return text
    found = evidence.substitute
    pair = f"{escape(found.head.name)}, {escape(found.tail.name)}" if found is not None else "no such pair"
    rows = [
        _row(
            "as it is",
            f"{escape(explanation.head.name)}, {escape(explanation.tail.name)}",
            evidence.factual_treatment,
            evidence.factual_probability,
        ),
        _row("counterfactual", pair, evidence.counterfactual_treatment, evidence.counterfactual_probability),
    ]
    head = '<tr><th></th><th>pair</th><th class="figure">T</th><th class="figure">probability</th><th></th></tr>'
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>\n{text}"


def _row(kind: str, pair: str, treated: bool, probability: float) -> str:
    return (
        f'<tr><th>{kind}</th><td>{pair}</td><td class="figure">{int(treated)}</td>'
        f'<td class="figure">{probability:.3f}</td><td>{_track(probability)}</td></tr>'
    )


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


def _deletion_row(deletion: NamedDeletion) -> str:
    path = escape(str(deletion.path))
    return (
        f'<tr data-removed="{deletion.removed}" title="{path}"><th>{_REMOVED[deletion.removed]}</th>'
        f'<td class="figure">{deletion.logit:.3f}</td><td class="figure">{deletion.drop:+.3f}</td>'
        f'<td class="figure">{deletion.probability:.3f}</td><td>{_track(deletion.probability)}</td></tr>'
    )


def _track(share: float) -> str:
    return f'<span class="track"><span style="width:{100 * share:.1f}%"></span></span>'
