"""`kgcf datasets ls | info | get`: which graphs there are, what is in them, and where their files are."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from kgcf.cli.options import (
    CommentOption,
    DataArgument,
    HeaderOption,
    JsonOption,
    LeakOption,
    NamesOption,
    SplitSeedOption,
    StripOption,
    open_data,
)
from kgcf.cli.tables import Column, DataTable, show_table
from kgcf.data.locations import locate
from kgcf.data.manifest import Benchmark, benchmark, benchmarks
from kgcf.data.reading_options import Reading
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell, print_json

datasets_app = typer.Typer(help="List benchmark graphs, look into any graph, fetch files.", no_args_is_help=True)
LISTED = (
    Column("name"),
    Column("entities", right=True, spare=1),
    Column("relations", right=True, spare=2),
    Column("train", right=True, spare=3),
    Column("valid", right=True, spare=5),
    Column("test", right=True, spare=4),
    Column("licence", folds=True, spare=6),
    Column("files", folds=True),
)


@datasets_app.command("ls")
def list_command(as_json: JsonOption = False) -> None:
    """List the benchmarks: size, licence, and where their files are."""
    found = [_entry(known) for known in benchmarks().values()]
    if as_json:
        print_json(found)
        return
    show_table(DataTable(LISTED, [[entry[column.title] for column in LISTED] for entry in found]))
    note = "Pairs such as wn18rr:v1 are inductive: they are tested on new entities."
    Screen(stderr=True, wrap=False).print(note, style="dim")


@datasets_app.command("info")
def info_command(
    data: DataArgument,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the relations of train and test to this .png or .svg file.")
    ] = None,
    relations: Annotated[int, typer.Option(min=0, help="How many relations to list, by triples in train.")] = 12,
    seed: Annotated[int, typer.Option(help="Seed of the sample that hops are counted from.")] = 0,
    names: NamesOption = None,
    header: HeaderOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    split_seed: SplitSeedOption = 0,
    allow_inverse_leak: LeakOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say what is in a graph: counts, degrees, hops, relation categories, unseen entities, leaks."""
    with importing():
        import numpy as np

        from kgcf.cli.dataset_tables import facts_tables
        from kgcf.data.statistics import describe
        from kgcf.figure_files import check_picture
        from kgcf.storage import check_writable
    if plot is not None:
        check_picture(plot)
        check_writable(plot)
    dataset = open_data(data, names, Reading(header, comment, strip), split_seed, allow_inverse_leak, quiet=as_json)
    facts = describe(dataset, np.random.default_rng(seed))
    if plot is not None:
        from kgcf.data.plots import draw_relations  # matplotlib is slow to import, and seldom needed

        draw_relations(facts, plot)
    known = None if dataset.benchmark is None else benchmark(dataset.benchmark)
    if as_json:
        found = facts.to_json() | ({} if known is None else {"benchmark": _entry(known)})
        print_json(found)
        return
    screen = Screen()
    if known is not None:
        screen.print(Text.assemble((known.name, "bold"), f": {known.about}"))
        for graph in known.graphs[:1]:
            screen.print(f"from {graph.source}", style="dim")
            screen.print(f"licence: {graph.licence}", style="dim")
    screen.print(facts_tables(facts, relations))
    if plot is not None:
        screen.print(cell(f"Drawn to {plot}"), soft_wrap=True)


@datasets_app.command("get")
def get_command(
    name: Annotated[str, typer.Argument(help="A benchmark's name; see `kgcf datasets ls`.")],
    to: Annotated[Path | None, typer.Option(help="Folder to put it into [default: the user cache].")] = None,
) -> None:
    """Copy or download a benchmark into the user cache, checked by sha256, and say where it is."""
    with importing():
        from kgcf.data.registry import get
    folders, notes = get(name, to)
    for note in notes:
        Screen(stderr=True, wrap=False).print(cell(f"note: {note}", "dim"))
    for folder in folders:
        Screen(wrap=False).print(cell(str(folder)))


def _entry(known: Benchmark) -> dict[str, str | int | bool]:
    first, last = known.graphs[0], known.graphs[-1]
    location = locate(known.name)
    absent = "download" if known.downloadable else "not at hand"
    return {
        "name": known.name,
        "about": known.about,
        "entities": first.entities,
        "relations": first.relations,
        "train": first.train,
        "valid": first.valid,
        "test": last.test,
        "inductive": known.inductive,
        "licence": known.licence,
        "source": first.source,
        "files": absent if location is None else location.title,
        "path": "" if location is None else str(location.path),
    }
