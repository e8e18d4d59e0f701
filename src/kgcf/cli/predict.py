"""`kgcf predict RUN`: the best tails, heads or relations for a question."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from kgcf.choices import CPU, PATHS, Attribution
from kgcf.cli.options import (
    CommentOption,
    DeviceOption,
    GraphOption,
    JsonOption,
    ObservedOption,
    RunArgument,
    StripOption,
    open_graph,
)
from kgcf.errors import DataError
from kgcf.machine.interrupts import importing
from kgcf.screen import print_json


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
    explain: Annotated[bool, typer.Option("--explain", help="Say why: the paths that carry every answer.")] = False,
    paths: Annotated[
        int | None, typer.Option(min=1, show_default=str(PATHS), help="--explain with so many paths per answer.")
    ] = None,
    attribution: Annotated[
        Attribution | None,
        typer.Option(
            show_default="removal", help="--explain with paths by what happens without them, or by gradients."
        ),
    ] = None,
    detail: Annotated[
        bool, typer.Option("--detail", help="--explain with logits, treatments and how the probability was made.")
    ] = False,
    device: DeviceOption = CPU,
    as_json: JsonOption = False,
) -> None:
    """Predict the missing part of a triple: give two of --head, --relation, --tail."""
    with importing():
        from kgcf.cli.answer_tables import show_answers
        from kgcf.prediction.answers import UNKNOWN, Question
        from kgcf.runs.run import Run
    opened = Run.open(run, device)
    question = Question(*(None if part == UNKNOWN else part for part in (head, relation, tail)))
    other = open_graph(graph, comment, strip)
    allowed = None if candidates is None else read_lines(candidates)
    if explain or detail or paths is not None or attribution is not None:
        with importing():
            from kgcf.cli.explained_answer_lines import print_explained
            from kgcf.explanation.explained_answers import SHORT, explain_answers
        explainer = opened.explainer(other, observed)
        how = replace(SHORT, top=paths or PATHS, attribution=attribution or SHORT.attribution)
        found = explain_answers(explainer, question, top, known, allowed, how=how)
        print_explained(found, as_json, detail)
        return
    answers = opened.predict(
        *question.parts, top=top, show_known=known, candidates=allowed, graph=other, observed=observed
    )
    if as_json:
        print_json([asdict(answer) for answer in answers])
        return
    show_answers(answers)


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a list of names: {error}.") from error
    if not any(lines):
        raise DataError(f"{path} is empty: it should have one name a line.")
    return [line for line in lines if line]
