"""`kgcf explain RUN HEAD RELATION TAIL`: why a triple is predicted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.choices import CANDIDATES, CPU, Asked, Attribution, Layers, Weighting
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
    "How to read it. First the triple and its probability. Because: chains of known facts that lead from head to tail. "
    "Behind each stands what the probability would be without it, and on it alone; then what all of them carry "
    "together, what the answer would survive and what would change it. A chain without which the probability rises "
    "speaks against the triple and is named apart. Compared: the most similar pair of entities with another role in "
    "the graph, and what is known there. --detail shows logits and treatments; docs/glossary.md explains every word."
)


def explain_command(
    run: RunArgument,
    head: Annotated[str, typer.Argument(metavar="HEAD", help="Name or label of the head.")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="Name or label of the relation.")],
    tail: Annotated[str, typer.Argument(metavar="TAIL", help="Name or label of the tail.")],
    top: Annotated[int, typer.Option(min=1, help="How many paths, at most.")] = 5,
    attribution: Annotated[
        Attribution,
        typer.Option(
            help="Choose paths by what happens without them, or by gradients of their edges (the paper's way)."
        ),
    ] = "removal",
    candidates: Annotated[
        int,
        typer.Option(min=1, help="removal: try so many paths by gradient, by integrated gradient and of the shortest."),
    ] = CANDIDATES,
    weighting: Annotated[Weighting, typer.Option(help="A path weighs the mean or the sum of its edges.")] = "mean",
    layers: Annotated[
        Layers, typer.Option(help="An edge counts in the layer of its step, or in all layers together.")
    ] = "own",
    asked: Annotated[
        Asked, typer.Option(help="Explain the triple as an answer for its tail or for its head.")
    ] = "tail",
    detail: Annotated[
        bool, typer.Option("--detail", help="Everything: logits, treatments, the deletion check with its controls.")
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
    """Explain a triple: the paths that carry it, what is left without them, and a comparable pair."""
    with importing():
        from kgcf.cli.explanation_tables import print_explanation
        from kgcf.explanation.how import How
        from kgcf.runs.run import Run
    _check(html, png)
    opened = Run.open(run, device)
    how = How(top=top, asked=asked, attribution=attribution, candidates=candidates, weighting=weighting, layers=layers)
    other = open_graph(graph, comment, strip)
    explanation = opened.explain(head, relation, tail, how=how, graph=other, observed=observed)
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
