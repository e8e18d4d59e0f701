"""`kgcf blend RUN RUN … --output NEW`: several finished runs as one; `--memory`: a finished run with a memory."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.cli.tables import Column, DataTable, show_table
from kgcf.errors import SettingsError
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell

if TYPE_CHECKING:
    from kgcf.pipeline import Execution
    from kgcf.runs.ensemble import EnsembleRecord
    from kgcf.runs.run import Run


def blend_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs on the same data.")],
    output: Annotated[Path, typer.Option(help="Folder of the new run, which holds copies of all of them.")],
    memory: Annotated[
        bool, typer.Option("--memory", help="Train a memory beside the paths of one run, which stay as they are.")
    ] = False,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="With --memory, a setting of it: memory.rank=100. Repeatable.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, help="Validation triples, drawn at random, that choose the weights of runs.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw and of the cross-validation of runs.")] = 0,
) -> None:
    """Let several runs (seeds, presets, depths) answer together, or give a memory to one; weights from validation."""
    screen = Screen(wrap=False)
    if memory:
        _add_memory(runs, output, changes)
    elif changes:
        raise SettingsError("--set is for --memory: runs are blended as they are.")
    else:
        with importing():
            from kgcf.runs.blending import blend_runs
        record = blend_runs(runs, output, limit=limit, seed=seed).ensemble
        assert record is not None
        show_table(_table(record))
        screen.print(cell(record.reason))
    screen.print(cell(f"The run is in {output}. Next: kgcf evaluate {output}"))


def _add_memory(runs: list[Path], output: Path, changes: list[str] | None) -> None:
    """Train a memory beside the paths of a run, and say what validation says of it."""
    if len(runs) != 1:
        raise SettingsError(f"--memory gives a memory to one run; {len(runs)} were named.")
    with importing():
        from kgcf.cli.train import train_watched
        from kgcf.runs.folder import RunFolder
        from kgcf.runs.memory_addition import add_memory
        from kgcf.training.distributed import World

    def work(execution: "Execution") -> "Run":
        return add_memory(runs[0], output, changes or (), listener=execution.listener, say=execution.say)

    train_watched(RunFolder(output), World(), work)


def _table(record: "EnsembleRecord") -> DataTable:
    """One row for each run."""
    caption = f"MRR of {record.questions:,} validation questions, filtered, realistic ties."
    table = DataTable((Column("run"), Column("MRR alone", right=True), Column("share", right=True)), caption=caption)
    for name, alone, share in zip(record.names, record.validation, record.shares, strict=True):
        table.rows.append([name, f"{alone:.4f}", f"{share:.2f}"])
    return table
