"""`kgcf evaluate RUN|DATA`: rank the answers of a split and print, or write, the results with their protocol."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.choices import CPU
from kgcf.cli.options import (
    CommentOption,
    DeviceOption,
    HeaderOption,
    JsonOption,
    LeakOption,
    NamesOption,
    SplitSeedOption,
    StripOption,
    open_data,
)
from kgcf.cli.streams import STANDARD
from kgcf.data.reading_options import Reading
from kgcf.errors import SettingsError, StorageError
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell, print_json

if TYPE_CHECKING:
    from kgcf.data.vocabulary import Vocabulary
    from kgcf.evaluation.results import Evaluation
    from kgcf.prediction.calibration.record import CalibrationRecord
    from kgcf.runs.run import Run


def evaluate_command(
    target: Annotated[str, typer.Argument(metavar="RUN|DATA", help="A run; or data, for the frequency baseline.")],
    split: Annotated[str, typer.Option(help="valid or test.")] = "test",
    graph: Annotated[str | None, typer.Option(help="Another dataset with the same relations, for a run.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rank only this many triples, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw and of the bootstrap.")] = 0,
    details: Annotated[bool, typer.Option("--details", help="Also print sides, ties, categories, relations.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write results.json to this file; - is standard output.")] = None,
    names: NamesOption = None,
    header: HeaderOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    split_seed: SplitSeedOption = 0,
    allow_inverse_leak: LeakOption = False,
    device: DeviceOption = CPU,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a run, or the frequency baseline on a dataset: the floor that every model must beat."""
    with importing():
        from kgcf.baselines.frequency import FrequencyScorer
        from kgcf.cli.evaluation_tables import show_calibration
        from kgcf.evaluation.results import evaluate
        from kgcf.progress import showing
        from kgcf.runs.run import Run
        from kgcf.storage import check_writable
    if output == STANDARD:
        output, as_json = None, True
    is_run = (Path(target) / "run.json").is_file()
    _check(target, is_run, split, graph, device)
    if output is not None:
        check_writable(output)
    other = graph if is_run else target
    data = (
        None
        if other is None
        else open_data(other, names, Reading(header, comment, strip), split_seed, allow_inverse_leak, quiet=as_json)
    )
    calibration: CalibrationRecord | None = None
    run = Run.open(target, device) if is_run else None
    asked = data or (run.data if run is not None else None)
    assert asked is not None
    count = len(getattr(asked, split))
    with showing("ranking", 2 * (count if limit is None else min(limit, count))) as advance:
        if run is not None:
            save = graph is None and split == "test" and limit is None and _can_keep(run)
            result = run.evaluate(split, limit=limit, seed=seed, data=data, save=save, advance=advance)
            relations = run.data.relations
            calibration = run.calibration if save else None
        else:
            scorer = FrequencyScorer(getattr(asked, split).observed)
            result = evaluate(scorer, asked, split, model="frequency", limit=limit, seed=seed, advance=advance)
            relations = asked.relations
    _show(result, relations, details, output, as_json)
    if calibration is not None and not as_json:
        show_calibration(calibration)


def _check(target: str, is_run: bool, split: str, graph: str | None, device: str) -> None:
    """Refuse what does not go together."""
    from kgcf.runs.arguments import check_split

    check_split(split)
    if graph is not None and not is_run:
        raise SettingsError(f"--graph goes with a run, and {target} is none.")
    if device != CPU and not is_run:
        raise SettingsError(f"--device goes with a run, and {target} is none: the frequency baseline only counts.")


def _can_keep(run: "Run") -> bool:
    """Whether results can be kept in the run; a run that may only be read is evaluated all the same, with a note."""
    from kgcf.storage import check_writable

    try:
        check_writable(run.folder.file("results.json"))
    except StorageError as error:
        Screen(stderr=True, wrap=False).print(cell(f"note: the results are shown, not kept. {error}", "dim"))
        return False
    return True


def _show(result: "Evaluation", relations: "Vocabulary", details: bool, output: Path | None, as_json: bool) -> None:
    from kgcf.cli.evaluation_tables import breakdown_tables, evaluation_table, result_rows
    from kgcf.storage import write_json

    if output is not None:
        write_json(output, result.to_json())
    if as_json:
        print_json(result.to_json())
        return
    screen = Screen()
    screen.print(evaluation_table(result_rows(result)))
    if details:
        screen.print(breakdown_tables(result, relations))
    if output is not None:
        screen.print(cell(f"Written to {output}"), soft_wrap=True)
