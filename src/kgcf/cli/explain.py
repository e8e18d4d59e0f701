"""`kgcf explain RUN HEAD RELATION TAIL`: why a triple is predicted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.choices import CPU, Asked, Attribution, Layers, Weighting
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

if TYPE_CHECKING:
    from kgcf.explanation.explanation import Explanation


HOW_TO_READ = (
    "How to read it. First the triple and its probability. Then the paths: chains of known facts from head to tail, "
    "the one that carries most weight first; a positive weight speaks for the triple, a negative one against it. "
    "T, the treatment, is 1 if head and tail have the same neighbourhood role under the relation (by default: the "
    "same core number), else 0; nothing medical is meant. Behind each edge stand its T as it is and as it would be. "
    "The nearest pair with the other T shows what to compare with, and ITE how much T changes the probability. Last, "
    "what is left of the score without the strongest path. docs/glossary.md explains every word."
)


def explain_command(
    run: RunArgument,
    head: Annotated[str, typer.Argument(metavar="HEAD", help="Name or label of the head.")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="Name or label of the relation.")],
    tail: Annotated[str, typer.Argument(metavar="TAIL", help="Name or label of the tail.")],
    top: Annotated[int, typer.Option(min=1, help="How many paths.")] = 5,
    weighting: Annotated[Weighting, typer.Option(help="A path weighs the mean or the sum of its edges.")] = "mean",
    layers: Annotated[
        Layers, typer.Option(help="An edge counts in the layer of its step, or in all layers together.")
    ] = "own",
    attribution: Annotated[
        Attribution,
        typer.Option(help="The importance of an edge: its gradient, or that integrated from no edges to all."),
    ] = "gradient",
    asked: Annotated[
        Asked, typer.Option(help="Explain the triple as an answer for its tail or for its head.")
    ] = "tail",
    detail: Annotated[
        bool, typer.Option("--detail", help="Also say how the probability was made, and which part was asked for.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with everything into this file; - is standard output.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Draw the paths into this file.")] = None,
    graph: GraphOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    observed: ObservedOption = "all",
    device: DeviceOption = CPU,
    as_json: JsonOption = False,
) -> None:
    """Explain a triple: its strongest paths, counterfactual evidence, and what is left without them."""
    with importing():
        from kgcf.cli.explanation_tables import print_explanation
        from kgcf.runs.run import Run
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
        graph=open_graph(graph, comment, strip),
        observed=observed,
    )
    _write(explanation, html, png)
    if html == STANDARD:
        return
    if as_json:
        print_json(explanation.to_json())
        return
    screen = Screen(wrap=False)
    print_explanation(screen, explanation, detail)
    for path in (html, png):
        if path is not None:
            screen.print(cell(f"Written to {path}.", "dim"))


def _check(html: Path | None, png: Path | None) -> None:
    """Refuse files that cannot be written, before the work."""
    from kgcf.figure_files import check_picture
    from kgcf.storage import check_writable

    if png is not None:
        check_picture(png, (".png",))
    for path in (html, png):
        if path is not None and path != STANDARD:
            check_writable(path)


def _write(explanation: "Explanation", html: Path | None, png: Path | None) -> None:
    """The page and the picture, where they were asked for."""
    if html is not None:
        from kgcf.explanation.page import write_page

        deliver(html, ".html", lambda path: write_page(explanation, path))
    if png is not None:
        from kgcf.explanation.plots import draw_paths  # matplotlib is slow to import, and seldom needed

        draw_paths(explanation, png)
