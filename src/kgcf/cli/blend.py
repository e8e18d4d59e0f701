"""`kgcf blend RUN RUN … --output NEW`: several finished runs as one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.cli.tables import Column, DataTable, show_table
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell

if TYPE_CHECKING:
    from kgcf.runs.ensemble import EnsembleRecord


def blend_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs on the same data.")],
    output: Annotated[Path, typer.Option(help="Folder of the new run, which holds copies of all of them.")],
    limit: Annotated[
        int, typer.Option(min=1, help="Validation triples, drawn at random, that choose the weights.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw and of the cross-validation.")] = 0,
) -> None:
    """Let several runs (seeds, presets, depths) answer together, with weights from validation."""
    with importing():
        from kgcf.runs.blending import blend_runs
    run = blend_runs(runs, output, limit=limit, seed=seed)
    assert run.ensemble is not None
    show_table(_table(run.ensemble))
    screen = Screen(wrap=False)
    screen.print(cell(run.ensemble.reason))
    screen.print(cell(f"The run is in {output}. Next: kgcf evaluate {output}"))


def _table(record: "EnsembleRecord") -> DataTable:
    """One row for each run."""
    caption = f"MRR of {record.questions:,} validation questions, filtered, realistic ties."
    table = DataTable((Column("run"), Column("MRR alone", right=True), Column("share", right=True)), caption=caption)
    for name, alone, share in zip(record.names, record.validation, record.shares, strict=True):
        table.rows.append([name, f"{alone:.4f}", f"{share:.2f}"])
    return table
