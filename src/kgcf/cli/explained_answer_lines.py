"""Answers for people, each with why."""

from collections.abc import Iterator

from rich.text import Text

from kgcf.cli.explanation_tables import path_text
from kgcf.data.vocabulary import name_and_label
from kgcf.explanation.explained_answers import ExplainedAnswer
from kgcf.explanation.words import counterfactual_line, missing_path_sentences
from kgcf.screen import Screen, cell, print_json


def print_explained(found: list[ExplainedAnswer], as_json: bool = False, detail: bool = False) -> None:
    """Each answer, its paths and its counterfactual evidence."""
    if as_json:
        print_json([item.to_json() for item in found])
        return
    screen = Screen(wrap=False)
    for item in found:
        for line in _explained_lines(item, detail):
            screen.print(line)


def _explained_lines(item: ExplainedAnswer, detail: bool) -> Iterator[Text]:
    """An answer: a headline, then indented why; in `detail` with logits."""
    a, e = item.answer, item.explanation
    head, tail = name_and_label(a.head_name, a.head), name_and_label(a.tail_name, a.tail)
    triple = f"{head} —{name_and_label(a.relation_name, a.relation)}→ {tail}"
    numbers = f"probability {a.probability:.4f}"
    if detail:
        numbers += f" ({a.probability_from} of logit {a.logit:.3f})"
    note = f"  {a.note}" if a.note else ""
    yield Text.assemble(cell(f"{a.rank}. {triple}", "bold"), f"  {numbers}", (note, "dim"))
    if e.known:
        logit = f", logit {e.logit:.3f}" if detail else ""
        yield Text(f"   explained as if it were not known: probability {e.probability:.4f}{logit}")
    for path in e.paths:
        yield Text.assemble(f"   {path.weight:+.4f}  ", path_text(path))
    for line in (*missing_path_sentences(e), counterfactual_line(e)):
        if line:
            yield cell(f"   {line}")
