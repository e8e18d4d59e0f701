"""`kgcf tune DATA`: search α, β and any other setting on validation; a stopped search goes on where it was."""

from pathlib import Path
from typing import Annotated

import typer

from kgcf.choices import CPU
from kgcf.cli.options import (
    CommentOption,
    DataArgument,
    DeviceOption,
    HeaderOption,
    LeakOption,
    NamesOption,
    SetOption,
    SplitSeedOption,
    StripOption,
    TimeOption,
    open_data,
)
from kgcf.data.reading_options import Reading
from kgcf.durations import AUTO
from kgcf.machine.interrupts import importing


def tune_command(
    data: DataArgument,
    preset: Annotated[str, typer.Option(help="Where the search starts from.")] = "default",
    trials: Annotated[int, typer.Option(min=1, help="How many settings to try in all.")] = 16,
    search: Annotated[
        list[str] | None,
        typer.Option("--search", help="section.key=value,value,…; repeatable [default: alpha and beta]."),
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder of the search; the same search is continued, another one refused.")
    ] = Path("runs/tune"),
    changes: SetOption = None,
    seed: Annotated[int, typer.Option(help="Of the order in which combinations are tried.")] = 0,
    time: TimeOption = AUTO,
    names: NamesOption = None,
    header: HeaderOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    split_seed: SplitSeedOption = 0,
    allow_inverse_leak: LeakOption = False,
    device: DeviceOption = CPU,
) -> None:
    """Search settings on validation MRR, kept in an optuna study; test triples are not looked at."""
    with importing():
        from kgcf.cli.search import Search, parse_searches
    space = parse_searches(search)
    dataset = open_data(data, names, Reading(header, comment, strip), split_seed, allow_inverse_leak)
    searching = Search(output, dataset, preset, list(changes or ()), device, time)
    best = searching.run(space, trials, seed)
    if best is not None:
        given: dict[str, object] = {"--preset": preset, "--names": names, "--header": header, "--comment": comment}
        given |= {"--strip": strip, "--split-seed": split_seed, "--allow-inverse-leak": allow_inverse_leak}
        searching.say_best(best, data, given | {"--device": device})
