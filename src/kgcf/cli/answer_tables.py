"""Answers for people: as a table, or each with why."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import islice

from rich.text import Text

from kgcf.cli.explanation_tables import path_text
from kgcf.cli.tables import Column, DataTable, show_table
from kgcf.data.vocabulary import name_and_label
from kgcf.explanation.explained_answers import ExplainedAnswer
from kgcf.explanation.memory_evidence import memory_sentences
from kgcf.explanation.words import counterfactual_line, missing_path_sentences
from kgcf.prediction.answers import Answer
from kgcf.screen import Screen, cell, print_json


def show_answers(answers: list[Answer]) -> None:
    """Answers as a table for people; piped, with the columns that `complete --output` writes."""
    titles = [Column(item.name) for item in fields(Answer)]
    in_full = DataTable(titles, [list(asdict(answer).values()) for answer in answers])
    show_table(answer_table(answers), in_full)


def answer_table(answers: list[Answer]) -> DataTable:
    """Answers for people: names, each with its label where that is something else."""
    kinds = sorted({a.probability_from for a in answers}) or ["sigmoid"]
    columns = (
        Column("rank", right=True, spare=1),
        Column("head", folds=True),
        Column("relation", folds=True),
        Column("tail", folds=True),
        Column("probability", right=True),
        Column("logit", right=True, digits=3, spare=3),
        Column("note", folds=True, spare=2),
    )
    table = DataTable(columns, caption=f"probability: {', '.join(kinds)}.")
    for a in answers:
        parts = ((a.head_name, a.head), (a.relation_name, a.relation), (a.tail_name, a.tail))
        table.rows.append([a.rank, *(_named(name, label) for name, label in parts), a.probability, a.logit, a.note])
    if any("unseen" in a.note for a in answers):
        table.caption += " unseen: train has no triple of this relation with this entity on this side."
    return table


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
    parts = islice(memory_sentences(e.memory, e.relation), 1)  # how much is memory, without what is alike
    for line in (*missing_path_sentences(e), *parts, counterfactual_line(e)):
        if line:
            yield cell(f"   {line}")


def _named(name: str, label: str) -> Text:
    """A name and, dim behind it, the label where that is something else."""
    return cell(name) if name == label else Text.assemble(cell(name), " ", cell(f"({label})", "dim"))
