"""The details on the page, in the paper's words: figures of paths, treatments, the deletion check."""

from kgcf.explanation.counterfactual import CounterfactualEvidence, Substitute
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.named_paths import NamedPath
from kgcf.explanation.page_html import escape, escape_text, isolated, paragraphs, path_line, table
from kgcf.explanation.words_in_detail import (
    answer_sentences,
    carried_sentences,
    counterfactual_sentences,
    deletion_sentences,
    missing_path_sentences,
)

_REMOVED = {"top": "first path", "random": "random path, same length", "shortest": "shortest path"}


def detail_of_paths(explanation: Explanation) -> str:
    """Logits, drops, weights, and every edge with its treatments."""
    named = [*((str(number), path) for number, path in enumerate(explanation.paths, start=1))]
    rows = [_path_row(number, path) for number, path in [*named, *(("against", path) for path in explanation.against)]]
    figures = table(("path", "drop", "alone", "weight"), rows, "path-figures") if rows else ""
    said = (*answer_sentences(explanation), *carried_sentences(explanation), *missing_path_sentences(explanation))
    return f"{paragraphs(said)}\n{figures}"


def _path_row(number: str, path: NamedPath) -> tuple[str, ...]:
    effect = path.effect
    figures = ("", "") if effect is None else (f"{effect.drop:+.3f}", f"{effect.alone.logit:+.3f}")
    return (f"{number}&ensp;{path_line(path, treatments=True)}", *figures, f"{path.weight:+.4f}")


def detail_of_treatments(explanation: Explanation) -> str:
    """What the model says of the triple under both treatments; then the other pair, of which the data speak."""
    evidence = explanation.counterfactual
    text = paragraphs(counterfactual_sentences(explanation))
    if evidence is None:
        return text
    return f"{_treatments(explanation, evidence)}\n{_other_pair(explanation, evidence.substitute)}\n{text}"


def _treatments(explanation: Explanation, evidence: CounterfactualEvidence) -> str:
    """The triple itself, as it is and under the other treatment."""
    own = evidence.factual_treatment
    rows = (
        ("as it is", str(int(own)), f"{evidence.factual_probability:.3f}"),
        ("under the other treatment", str(int(not own)), f"{evidence.other_probability:.3f}"),
    )
    caption = f"The model on {escape(explanation.triple)}"
    return table(("", "T", "its probability"), rows, "treatments", caption)


def _other_pair(explanation: Explanation, pair: Substitute | None) -> str:
    """The nearest pair with the other treatment: a fact of the graph, no probability."""
    if pair is None:
        return ""
    head, relation, tail = (isolated(part.shown) for part in (pair.head, explanation.relation, pair.tail))
    known = "yes" if pair.known else "no"
    row = (f"{head} —{relation}→ {tail}", str(int(pair.factual_treatment)), f"{pair.distance:.3f}", known)
    caption = "The nearest other pair that has the other treatment"
    return table(("", "T", "distance", "in the observed graph"), (row,), "other-pair", caption)


def detail_of_deletion(explanation: Explanation) -> str:
    """The score without the first path, beside two controls."""
    if not explanation.deletion:
        return "<p>There is no path to remove.</p>"
    rows = [("nothing", f"{explanation.logit:.3f}", "", f"{explanation.probability:.3f}")]
    for found in explanation.deletion:
        shown = escape_text(str(found.path))
        title = f'<span data-removed="{found.removed}" title="{shown}">{_REMOVED[found.removed]}</span>'
        rows.append((title, f"{found.logit:.3f}", f"{found.drop:+.3f}", f"{found.probability:.3f}"))
    figures = table(("removed", "logit", "drop", "probability"), rows, "deletion")
    return f"{figures}\n{paragraphs(deletion_sentences(explanation))}"
