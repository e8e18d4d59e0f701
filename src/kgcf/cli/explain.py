"""`kgcf explain RUN HEAD RELATION TAIL`: why a triple is predicted."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from kgcf.cli.options import DeviceOption, JsonOption
from kgcf.cli.path_table import path_table
from kgcf.cli.predict import GraphOption, ObservedOption
from kgcf.cli.train import RunArgument
from kgcf.devices import CPU
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.page import write_page
from kgcf.explanation.sentences import (
    answer_sentences,
    counterfactual_sentences,
    deletion_sentences,
    missing_path_sentences,
)
from kgcf.pictures import check_picture
from kgcf.run import Run
from kgcf.storage import check_writable


def explain_command(
    run: RunArgument,
    head: Annotated[str, typer.Argument(metavar="HEAD", help="Name or label of the head.")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="Name or label of the relation.")],
    tail: Annotated[str, typer.Argument(metavar="TAIL", help="Name or label of the tail.")],
    top: Annotated[int, typer.Option(min=1, help="How many paths.")] = 5,
    weighting: Annotated[
        Literal["mean", "sum"], typer.Option(help="A path weighs the mean or the sum of its edges.")
    ] = "mean",
    layers: Annotated[
        Literal["own", "all"], typer.Option(help="An edge counts in the layer of its step, or in all layers together.")
    ] = "own",
    attribution: Annotated[
        Literal["gradient", "integrated"],
        typer.Option(help="The importance of an edge: its gradient, or that integrated from no edges to all."),
    ] = "gradient",
    asked: Annotated[
        Literal["tail", "head"], typer.Option(help="Explain the triple as an answer for its tail or for its head.")
    ] = "tail",
    html: Annotated[Path | None, typer.Option(help="Write a page with everything into this file.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw the paths into this file.")] = None,
    graph: GraphOption = None,
    observed: ObservedOption = "all",
    device: DeviceOption = CPU,
    as_json: JsonOption = False,
) -> None:
    """Explain a triple: its strongest paths, counterfactual evidence, and what is left without them."""
    _check(html, png)
    opened = Run.open(run, device)
    explanation = opened.explain(
        head,
        relation,
        tail,
        top=top,
        asked=asked,
        weighting=weighting,
        layers=layers,
        attribution=attribution,
        graph=graph,
        observed=observed,
    )
    _write(explanation, html, png)
    if as_json:
        typer.echo(json.dumps(explanation.to_json(), indent=2, ensure_ascii=False))
        return
    console = Console(soft_wrap=True, highlight=False)
    print_explanation(console, explanation)
    for path in (html, png):
        if path is not None:
            console.print(f"Written to {path}.", style="dim", markup=False)


def _check(html: Path | None, png: Path | None) -> None:
    """Refuse files that cannot be written, before the work."""
    if png is not None:
        check_picture(png, (".png",))
    for path in (html, png):
        if path is not None:
            check_writable(path)


def _write(explanation: Explanation, html: Path | None, png: Path | None) -> None:
    """The page and the picture, where they were asked for."""
    if html is not None:
        write_page(explanation, html)
    if png is not None:
        from kgcf.explanation.picture import draw_paths  # matplotlib is slow to import, and seldom needed

        draw_paths(explanation, png)


def print_explanation(console: Console, explanation: Explanation) -> None:
    """The answer, its paths, the counterfactual and the deletion check, for people."""
    for line in answer_sentences(explanation):
        console.print(line, style="bold", markup=False)
    if explanation.paths:
        console.print(path_table(explanation))
    parts = (missing_path_sentences, counterfactual_sentences, deletion_sentences)
    for part in parts:
        for line in part(explanation):
            console.print(line, markup=False)
