"""`kgcf complete RUN`: the most likely missing triples of a graph."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from kgcf.cli.options import DeviceOption, JsonOption
from kgcf.cli.predict import GraphOption, ObservedOption, answer_table
from kgcf.cli.train import RunArgument
from kgcf.devices import CPU
from kgcf.prediction.completion import complete, estimate_seconds, plan_completion
from kgcf.prediction.outputs import check_format, write_answers
from kgcf.progress import showing
from kgcf.run import Run
from kgcf.storage import check_writable


def complete_command(
    run: RunArgument,
    relation: Annotated[list[str] | None, typer.Option(help="Only this relation. Repeatable [default: all].")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many triples.")] = 1000,
    candidates: Annotated[
        Literal["seen", "all"],
        typer.Option(help="Entities already seen on that side of the relation, or all entities."),
    ] = "seen",
    min_probability: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out what is less likely, by calibrated probability.")
    ] = 0.0,
    output: Annotated[Path | None, typer.Option(help="Write .tsv, .csv, .parquet, .jsonl or .nt.")] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only say what it would cost.")] = False,
    graph: GraphOption = None,
    observed: ObservedOption = "all",
    device: DeviceOption = CPU,
    as_json: JsonOption = False,
) -> None:
    """Propose the most likely triples that the graph does not have."""
    if output is not None:
        check_format(output)
        check_writable(output)
    opened = Run.open(run, device)
    bound = opened.observe(graph, observed)
    task = plan_completion(bound, relation, candidates == "all")
    seconds = estimate_seconds(bound, task)
    talk = Console(stderr=True, highlight=False, soft_wrap=True)
    talk.print(f"{task.question_count:,} questions (head, relation, ?), about {seconds:,.0f} s", style="dim")
    if estimate:
        return
    with showing("completing", task.question_count) as advance:
        answers = complete(bound, task, top, min_probability, advance)
    if output is not None:
        write_answers(answers, output)
        talk.print(f"{len(answers):,} triples written to {output}")
    elif as_json:
        typer.echo(json.dumps([asdict(answer) for answer in answers], indent=2, ensure_ascii=False))
    else:
        Console().print(answer_table(answers))
