"""Answers for people, each with why."""

from collections.abc import Iterator
from itertools import islice

from rich.text import Text

from kgcf.cli.explanation_tables import path_text
from kgcf.data.vocabulary import name_and_label
from kgcf.explanation import words, words_in_detail
from kgcf.explanation.explained_answers import ExplainedAnswer
from kgcf.explanation.explanation import Explanation
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
        numbers += f" ({a.probability_from}{'' if a.logit is None else f' of logit {a.logit:.3f}'})"
    note = f"  {a.note}" if a.note else ""
    yield Text.assemble(cell(f"{a.rank}. {triple}", "bold"), f"  {numbers}", (note, "dim"))
    if e.known:
        logit = f", logit {e.logit:.3f}" if detail else ""
        yield Text(f"   explained as if it were not known: probability {e.probability:.4f}{logit}")
    yield from _detail_lines(e) if detail else _plain_lines(e)


def _plain_lines(explanation: Explanation) -> Iterator[Text]:
    """Because of which paths, against which, and the comparable pair."""
    kinds = (("because", explanation.reasons), ("against", explanation.opposed))
    for kind, path in ((kind, path) for kind, paths in kinds for path in paths):
        yield Text.assemble(f"   {kind} ", path_text(path), cell(words.without_sentence(path), "dim"))
    carried = islice(words.carried_sentences(explanation), 1)
    beside = islice(words_in_detail.beside_sentences(explanation), 1)  # how much is memory, without what is alike
    for line in (*words.missing_sentences(explanation), *carried, *beside, words.pair_line(explanation)):
        if line:
            yield cell(f"   {line}")


def _detail_lines(explanation: Explanation) -> Iterator[Text]:
    """Every path with its figures and treatments, then the sentences in detail."""
    kinds = (("for", explanation.reasons), ("against", explanation.opposed))
    for kind, path in ((kind, path) for kind, paths in kinds for path in paths):
        figures = words_in_detail.effect_figures(path)
        yield Text.assemble(f"   {kind} {figures}: ", path_text(path, treatments=True))
    parts = (
        words_in_detail.missing_path_sentences,
        words_in_detail.carried_sentences,
        words_in_detail.counterfactual_sentences,
        words_in_detail.beside_sentences,
    )
    for line in (line for part in parts for line in part(explanation)):
        yield cell(f"   {line}")
