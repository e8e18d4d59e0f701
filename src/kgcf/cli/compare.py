"""`kgcf compare RUN …`: runs beside each other, and their learning curves as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.cli.tables import Column, DataTable, show_table
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell

if TYPE_CHECKING:
    from kgcf.runs.comparison import RunRecord


def compare_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, finished or not.")],
    plot: Annotated[
        Path | None, typer.Option(help="Draw validation MRR by epoch and time: a .png or .svg file.")
    ] = None,
) -> None:
    """Compare runs: settings that matter, best validation, test figures, time."""
    with importing():
        from kgcf.figure_files import check_picture
        from kgcf.runs.comparison import read_record
        from kgcf.storage import check_writable
    if plot is not None:
        check_picture(plot)
        check_writable(plot)
    records = [read_record(path) for path in runs]
    show_table(_table(records))
    if plot is not None:
        from kgcf.runs.plots import draw_learning  # matplotlib is slow to import, and seldom needed

        draw_learning(records, plot)
        Screen(wrap=False).print(cell(f"The picture is in {plot}."))


def _table(records: "list[RunRecord]") -> DataTable:
    """One column for each run, one row for each thing that can be compared."""
    columns = [_column(record) for record in records]
    table = DataTable(
        (Column("run"), *(Column(record.name, right=True, folds=True) for record in records)),
        caption="All MRR, MR and H@k: filtered, both sides, realistic ties.",
    )
    table.rows += [[title, *(column[title] for column in columns)] for title in columns[0]]
    return table


def _column(record: "RunRecord") -> dict[str, str]:
    settings, best, test = record.settings, record.best, record.test
    ours = settings.baseline is None  # other models have neither layers of ours nor a treatment
    return {
        "dataset": record.dataset,
        "preset": record.preset,
        "layers, width": f"{settings.encoder.layers}, {settings.encoder.width}" if ours else "",
        "context": settings.encoder.context if ours else "",
        "treatment": "" if not ours else settings.treatment.method if settings.decoder.treatment else "none",
        "α, β": f"{settings.objective.alpha:g}, {settings.objective.beta:g}" if ours else "",
        "memory": record.memory if ours else "",
        "seed": str(settings.training.seed),
        "epochs done": f"{len(record.epochs)} of {settings.training.epochs}",
        "minutes": f"{record.minutes:.1f}",
        "best validation MRR": "" if best is None else f"{best[1]:.4f}",
        "best epoch": "" if best is None else f"{best[0]:.0f}",
        "test MRR": f"{test['mrr']:.4f}" if test else "",
        "test MR": f"{test['mr']:,.1f}" if test else "",
        "test H@1": f"{test['hits@1']:.4f}" if test else "",
        "test H@3": f"{test['hits@3']:.4f}" if test else "",
        "test H@10": f"{test['hits@10']:.4f}" if test else "",
    }
