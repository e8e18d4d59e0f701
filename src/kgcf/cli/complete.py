"""`kgcf complete RUN`: the most likely missing triples of a graph."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kgcf.choices import CPU, OutputFormat, Scope
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
from kgcf.cli.streams import STANDARD, deliver
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell, print_json


def complete_command(
    run: RunArgument,
    relation: Annotated[list[str] | None, typer.Option(help="Only this relation. Repeatable [default: all].")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many triples.")] = 1000,
    candidates: Annotated[
        Scope,
        typer.Option(help="Entities already seen on that side of the relation, or all entities."),
    ] = "seen",
    min_probability: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out what is less likely to be among facts held back.")
    ] = 0.0,
    output: Annotated[
        Path | None, typer.Option(help="Write .tsv, .csv, .parquet, .jsonl or .nt; - is standard output.")
    ] = None,
    form: Annotated[
        OutputFormat | None,
        typer.Option("--format", help="Of the output [default: by the ending of its name; tsv on standard output]."),
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only say what it would cost.")] = False,
    graph: GraphOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    observed: ObservedOption = "all",
    device: DeviceOption = CPU,
    as_json: JsonOption = False,
) -> None:
    """Propose the most likely triples that the graph does not have."""
    with importing():
        from kgcf.cli.answer_tables import show_answers
        from kgcf.prediction.calibration.completed_links import MEANING
        from kgcf.prediction.completion import complete, estimate_seconds, plan_completion
        from kgcf.prediction.outputs import write_answers
        from kgcf.progress import showing
        from kgcf.runs.run import Run
    if form is not None and output is None:
        output = STANDARD
    kind = _format(output, form)
    opened = Run.open(run, device)
    bound = opened.observe(open_graph(graph, comment, strip), observed)
    task = plan_completion(bound, relation, candidates == "all")
    seconds = estimate_seconds(bound, task)
    talk = Screen(stderr=True, wrap=False)
    talk.print(f"{task.question_count:,} questions (head, relation, ?), about {seconds:,.0f} s", style="dim")
    if estimate:
        return
    calibration = opened.completion_calibration(candidates == "all", memory=bound.remembers)
    with showing("completing", task.question_count) as advance:
        answers = complete(bound, task, top, min_probability, advance, calibration)
    talk.print(MEANING if calibration.curve is not None else calibration.reason, style="dim")
    if output is not None and kind is not None:
        deliver(output, kind, lambda path: write_answers(answers, path, kind))
        destination = "standard output" if output == STANDARD else output
        talk.print(cell(f"{len(answers):,} triples written to {destination}"))
    elif as_json:
        print_json([asdict(answer) for answer in answers])
    else:
        show_answers(answers)


def _format(output: Path | None, form: str | None) -> str | None:
    """The ending that stands for the format, checked before any work is done; None where no file is written."""
    if output is None:
        return None
    from kgcf.prediction.outputs import check_format
    from kgcf.storage import check_writable

    kind = f".{form}" if form is not None else ".tsv" if output == STANDARD else output.suffix.lower()
    check_format(output, kind)
    if output != STANDARD:
        check_writable(output)
    return kind
