"""Answers as a table."""

from dataclasses import asdict, fields

from rich.text import Text

from kgcf.cli.tables import Column, DataTable, show_table
from kgcf.prediction.answers import Answer
from kgcf.screen import cell


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


def _named(name: str, label: str) -> Text:
    """A name and, dim behind it, the label where that is something else."""
    return cell(name) if name == label else Text.assemble(cell(name), " ", cell(f"({label})", "dim"))
