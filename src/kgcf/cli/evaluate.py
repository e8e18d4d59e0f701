"""`kgcf evaluate DATA`: rank the answers of a split and print, or write, the results with their protocol."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kgcf.baselines.frequency import FrequencyScorer
from kgcf.cli.options import (
    DataArgument,
    HeaderOption,
    JsonOption,
    LeakOption,
    NamesOption,
    SplitSeedOption,
    open_data,
)
from kgcf.errors import unknown_name
from kgcf.evaluation.report import breakdown_tables, evaluation_table
from kgcf.evaluation.results import evaluate
from kgcf.progress import showing
from kgcf.storage import write_json

_SPLITS = ("valid", "test")


def evaluate_command(
    data: DataArgument,
    split: Annotated[str, typer.Option(help="valid or test.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Rank only this many triples, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw and of the bootstrap.")] = 0,
    details: Annotated[bool, typer.Option("--details", help="Also print sides, ties, categories, relations.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write results.json to this file.")] = None,
    names: NamesOption = None,
    header: HeaderOption = None,
    split_seed: SplitSeedOption = 0,
    allow_inverse_leak: LeakOption = False,
    as_json: JsonOption = False,
) -> None:
    """Evaluate the frequency baseline on a dataset: the floor that every model must beat."""
    if split not in _SPLITS:
        raise unknown_name("split", split, _SPLITS)
    dataset = open_data(data, names, header, split_seed, allow_inverse_leak, quiet=as_json)
    task = getattr(dataset, split)
    asked = 2 * (len(task) if limit is None else min(limit, len(task)))
    with showing("ranking", asked) as advance:
        scorer = FrequencyScorer(task.observed)
        result = evaluate(scorer, dataset, split, model="frequency", limit=limit, seed=seed, advance=advance)
    if output is not None:
        write_json(output, result.to_json())
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2, ensure_ascii=False))
        return
    console = Console()
    console.print(evaluation_table({"frequency": result}))
    if details:
        console.print(breakdown_tables(result, dataset.relations))
    if output is not None:
        console.print(f"Written to {output}", soft_wrap=True)
