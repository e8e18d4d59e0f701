"""`kgcf predict RUN`: the best tails, heads or relations for a question."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from kgcf.cli.options import CommentOption, DeviceOption, JsonOption, StripOption, open_graph
from kgcf.cli.path_table import path_text
from kgcf.cli.train import RunArgument
from kgcf.data.vocabulary import name_and_label
from kgcf.errors import DataError
from kgcf.explanation.explained_answers import PATHS, ExplainedAnswer, explain_answers
from kgcf.explanation.words import counterfactual_line, missing_path_sentences
from kgcf.machine.devices import CPU
from kgcf.prediction.answers import UNKNOWN, Answer, Question
from kgcf.runs.run import Run
from kgcf.screen import Screen, cell, print_json

GraphOption = Annotated[
    Path | None, typer.Option("--graph", help="Observe this file of triples instead; its entities may be new.")
]
ObservedOption = Annotated[
    Literal["all", "train"], typer.Option("--observed", help="Observe everything that was given, or train only.")
]


def predict_command(
    run: RunArgument,
    head: Annotated[str | None, typer.Option(help="Name or label of the head.")] = None,
    relation: Annotated[str | None, typer.Option(help="Name or label of the relation, or '?'.")] = None,
    tail: Annotated[str | None, typer.Option(help="Name or label of the tail.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many answers.")] = 10,
    known: Annotated[bool, typer.Option("--known", help="Also show answers that are known already.")] = False,
    candidates: Annotated[Path | None, typer.Option(help="Only these entities: a file, one a line.")] = None,
    graph: GraphOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    observed: ObservedOption = "all",
    explain: Annotated[bool, typer.Option("--explain", help="Say why: the best paths of every answer.")] = False,
    paths: Annotated[
        int | None, typer.Option(min=1, show_default=str(PATHS), help="--explain with so many paths per answer.")
    ] = None,
    device: DeviceOption = CPU,
    as_json: JsonOption = False,
) -> None:
    """Predict the missing part of a triple: give two of --head, --relation, --tail."""
    opened = Run.open(run, device)
    question = Question(_given(head), _given(relation), _given(tail))
    other = open_graph(graph, comment, strip)
    allowed = None if candidates is None else read_lines(candidates)
    if explain or paths is not None:
        explainer = opened.explainer(other, observed)
        print_explained(explain_answers(explainer, question, top, known, allowed, paths=paths or PATHS), as_json)
        return
    answers = opened.predict(
        *question.parts, top=top, show_known=known, candidates=allowed, graph=other, observed=observed
    )
    if as_json:
        print_json([asdict(answer) for answer in answers])
        return
    Screen().print(answer_table(answers))


def answer_table(answers: list[Answer]) -> Table:
    """Answers as a table for people: names, each with its label where that is something else."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    kinds = sorted({a.probability_from for a in answers}) or ["sigmoid"]
    for title in ("rank", "head", "relation", "tail", f"probability ({', '.join(kinds)})", "logit", "note"):
        right = title in ("rank", "logit") or title.startswith("probability")
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for a in answers:
        parts = ((a.head_name, a.head), (a.relation_name, a.relation), (a.tail_name, a.tail))
        numbers = (f"{a.probability:.4f}", f"{a.logit:.3f}")
        table.add_row(str(a.rank), *(_named(name, label) for name, label in parts), *numbers, a.note)
    if any("unseen" in a.note for a in answers):
        table.caption = "unseen: train has no triple of this relation with this entity on this side."
        table.caption_justify = "left"
    return table


def print_explained(found: list[ExplainedAnswer], as_json: bool = False) -> None:
    """Each answer, its paths and its counterfactual evidence."""
    if as_json:
        print_json([item.to_json() for item in found])
        return
    screen = Screen(wrap=False)
    for item in found:
        for line in _explained_lines(item):
            screen.print(line)


def _explained_lines(item: ExplainedAnswer) -> Iterator[Text]:
    """An answer: a headline, then indented why."""
    a, e = item.answer, item.explanation
    head, tail = name_and_label(a.head_name, a.head), name_and_label(a.tail_name, a.tail)
    triple = f"{head} —{name_and_label(a.relation_name, a.relation)}→ {tail}"
    numbers = f"probability {a.probability:.4f} ({a.probability_from}), logit {a.logit:.3f}"
    note = f"  {a.note}" if a.note else ""
    yield Text.assemble(cell(f"{a.rank}. {triple}", "bold"), f"  {numbers}", (note, "dim"))
    if e.known:
        yield Text(f"   explained as if it were not known: probability {e.probability:.4f}, logit {e.logit:.3f}")
    for path in e.paths:
        yield Text.assemble(f"   {path.weight:+.4f}  ", path_text(path))
    for line in (*missing_path_sentences(e), counterfactual_line(e)):
        if line:
            yield cell(f"   {line}")


def _named(name: str, label: str) -> Text:
    """A name and, dim behind it, the label where that is something else."""
    return cell(name) if name == label else Text.assemble(cell(name), " ", cell(f"({label})", "dim"))


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a list of names: {error}.") from error
    if not any(lines):
        raise DataError(f"{path} is empty: it should have one name a line.")
    return [line for line in lines if line]


def _given(text: str | None) -> str | None:
    return None if text == UNKNOWN else text
