"""`kgcf reproduce TARGET`: the paper's tables and figures, cell by cell; `kgcf reproduce report` writes of them."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.choices import REPORT
from kgcf.errors import SettingsError
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell

if TYPE_CHECKING:
    from kgcf.reproduction.cells import Cell, Scale
    from kgcf.reproduction.store import Store
    from kgcf.reproduction.work import Outcome


def reproduce_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="table1 … table4, figure2, figure4, ablations or all; report writes the document."
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Minutes, on tiny graphs: whether everything runs.")] = False,
    full: Annotated[bool, typer.Option("--full", help="More time and seeds; every other setting stays ours.")] = False,
    only: Annotated[
        str | None, typer.Option(help="Only cells whose name or variant contains this; several with commas.")
    ] = None,
    part: Annotated[str | None, typer.Option(help="K/N: every Nth cell from the Kth, for several machines.")] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the cells: done, open, outdated or damaged, how long; compute none.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Compute anew what was finished with settings that have changed since.")
    ] = False,
    results: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results/cells"),
    document: Annotated[Path, typer.Option(help="What `report` writes, with plots beside it.")] = Path(
        "docs/results.md"
    ),
) -> None:
    """Compute a table or figure of the paper; finished cells are kept, interrupted ones go on.

    Several processes may work on one folder of results at the same time: each takes cells that no other has.
    """
    if quick and full:
        raise SettingsError("Give --quick or --full, not both.")
    scale: Scale = "quick" if quick else "full" if full else "default"
    with importing():
        from kgcf.reproduction.store import Store
    store = Store(results)
    if target == REPORT:
        if quick or full or only is not None or part is not None or listed or again:
            raise SettingsError(
                "`report` writes of everything that is finished: it takes --results and --document alone."
            )
        _report(store, document)
        return
    with importing():
        from kgcf.reproduction.targets import cells_of
    cells = _chosen(cells_of(target, scale), only, part)
    if listed:
        _list(store, cells)
        return
    with importing():
        from kgcf.reproduction.work import compute_cells
    screen = Screen(stderr=True, wrap=False)
    screen.print(cell(_how_long(store, cells, again)))
    _summary(compute_cells(store, cells, lambda text: screen.print(cell(text)), again), results)


def _chosen(cells: "list[Cell]", only: str | None, part: str | None) -> "list[Cell]":
    """The cells of this call; an answer that chooses none is a mistake."""
    chosen = cells
    if only is not None:
        words = [word.strip() for word in only.split(",") if word.strip()]
        chosen = [one for one in cells if any(word in one.name or word in one.variant for word in words)]
        if not chosen:
            raise SettingsError(f"No cell's name or variant contains {only!r}. `--list` shows them.")
    if part is not None:
        found = re.fullmatch(r"(\d+)/(\d+)", part)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise SettingsError(f"--part cannot be {part!r}: give K/N, for example 1/2 and 2/2.")
        chosen = chosen[int(found[1]) - 1 :: int(found[2])]
    return chosen


def _list(store: "Store", cells: "list[Cell]") -> None:
    """A line for every cell: how it stands, its name, what tables call it, what is wrong with it, how long it takes."""
    with importing():
        from kgcf.durations import spoken
        from kgcf.reproduction.estimates import Estimates
        from kgcf.reproduction.standing import standing_of
    estimates, left = Estimates(store), list["Cell"]()
    for one in cells:
        standing, seconds = standing_of(store, one), estimates.seconds(one)
        why = f"  ({standing.why})" if standing.why else ""
        long = f"  about {spoken(seconds)}" if standing.word != "done" and seconds is not None else ""
        Screen(wrap=False).print(cell(f"{standing.word:<8}  {one.name}  {one.variant}{why}{long}"))
        if standing.word in ("open", "damaged"):
            left.append(one)
    Screen(stderr=True, wrap=False).print(cell(f"{len(left)} of {len(cells)} cells to compute. {estimates.of(left)}"))


def _how_long(store: "Store", cells: "list[Cell]", again: bool) -> str:
    """How many cells a call will compute, and how long that takes by what finished ones took."""
    with importing():
        from kgcf.reproduction.estimates import Estimates
        from kgcf.reproduction.standing import standing_of
    words = ("open", "damaged", "outdated") if again else ("open", "damaged")
    left = [one for one in cells if standing_of(store, one).word in words]
    return f"{len(left)} of {len(cells)} cells to compute. {Estimates(store).of(left)}"


def _summary(outcome: "Outcome", results: Path) -> None:
    """What was done, what is left, and how to go on."""
    screen, there = Screen(wrap=False), len(outcome.there) + len(outcome.outdated)
    screen.print(
        cell(
            f"{len(outcome.computed)} cells computed, {there} were there, {len(outcome.elsewhere)} are "
            f"another process's, {len(outcome.failed)} failed. Results: {results}. "
            "The document: kgcf reproduce report"
        )
    )
    if outcome.outdated:
        count = len(outcome.outdated)
        screen.print(
            cell(f"{count} of those that were there are outdated: --list says why, --again computes them anew.")
        )
    if outcome.failed:
        raise typer.Exit(1)


def _report(store: "Store", document: Path) -> None:
    """Write the document."""
    with importing():
        from kgcf.reproduction.report.document import write_document
    changed = write_document(store, document)
    Screen(wrap=False).print(cell(f"{document} {'was written' if changed else 'is as it was: nothing changed'}."))
