"""Arguments and options that several commands share, and how DATA becomes a dataset."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.choices import CPU, Observed
from kgcf.data.reading_options import Reading
from kgcf.durations import AUTO, read_duration
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell

if TYPE_CHECKING:
    from kgcf.data.dataset import Dataset
    from kgcf.data.parsing import TripleTable


def _device(name: str) -> str:
    """Refuse a device that is not there; torch need not be asked about the CPU."""
    if name == CPU:
        return name
    from kgcf.machine.devices import find_device

    return str(find_device(name))


def _duration(text: str) -> str:
    """Refuse what is no time before anything is read."""
    if text.strip().lower() != AUTO:
        read_duration(text)
    return text


DataArgument = Annotated[str, typer.Argument(metavar="DATA", help="A benchmark's name, a folder or a file of triples.")]
NamesOption = Annotated[Path | None, typer.Option("--names", help="File of display names: label, tab, name.")]
HeaderOption = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a text file starts with a header [default: detected]."),
]
CommentOption = Annotated[
    str | None, typer.Option("--comment", help="Skip the lines of a text file that begin with this, such as '#'.")
]
StripOption = Annotated[bool, typer.Option("--strip", help="Remove spaces around labels.")]
SplitSeedOption = Annotated[int, typer.Option("--split-seed", help="Seed for splitting a single file.")]
LeakOption = Annotated[
    bool, typer.Option("--allow-inverse-leak", help="Let a fact and its mirror image fall into different splits.")
]
DeviceOption = Annotated[
    str,
    typer.Option("--device", help="Where the model computes: cpu, cuda or cuda:N.", callback=_device),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="Change a setting: section.key=value. Repeatable.")]
GraphOption = Annotated[
    Path | None, typer.Option("--graph", help="Observe this file of triples instead; its entities may be new.")
]
ObservedOption = Annotated[
    Observed, typer.Option("--observed", help="Observe everything that was given, or train only.")
]
TimeOption = Annotated[
    str,
    typer.Option(
        "--time",
        callback=_duration,
        help="What the whole command may take: 90s, 30m, 2h, or none. Depth, negatives and passes are chosen for it, "
        "where nobody has. auto: 30m for data that kgcf has no file of settings for, else none.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of tables for people.")]


def open_data(
    data: str,
    names: Path | None,
    reading: Reading,
    split_seed: int,
    allow_inverse_leak: bool,
    quiet: bool = False,
) -> "Dataset":
    """Read DATA and say, on standard error, what was assumed and found."""
    with importing():
        from kgcf.data.source import read
        from kgcf.data.splitting import SplitSettings
    settings = SplitSettings(seed=split_seed, allow_inverse_leak=allow_inverse_leak)
    dataset = read(
        data, names=names, split=settings, header=reading.header, comment=reading.comment, strip=reading.strip
    )
    if not quiet:
        say_notes(dataset.notes)
    return dataset


def open_graph(path: Path | None, comment: str | None, strip: bool) -> "TripleTable | None":
    """Read the file of --graph and say what was assumed and found."""
    if path is None:
        return None
    with importing():
        from kgcf.data.reader import read_table
    table = read_table(path, Reading(comment=comment, strip=strip))
    say_notes(table.notes)
    return table


def say_notes(notes: Iterable[str]) -> None:
    """Notes for people, on standard error."""
    screen = Screen(stderr=True, wrap=False)
    for note in notes:
        screen.print(cell(f"note: {note}", "dim"))
