"""`kgcf train DATA` and `kgcf resume RUN`."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.choices import CPU
from kgcf.cli.options import (
    CommentOption,
    DataArgument,
    DeviceOption,
    HeaderOption,
    LeakOption,
    NamesOption,
    RunArgument,
    SetOption,
    SplitSeedOption,
    StripOption,
    TimeOption,
    open_data,
)
from kgcf.data.reading_options import Reading
from kgcf.durations import AUTO
from kgcf.errors import SettingsError
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell

if TYPE_CHECKING:
    from kgcf.pipeline import Execution
    from kgcf.runs.folder import RunFolder
    from kgcf.runs.run import Run
    from kgcf.training.distributed import World


def train_command(
    data: DataArgument,
    preset: Annotated[str, typer.Option(help="default, fast, paper or nbfnet.")] = "default",
    model: Annotated[str | None, typer.Option(help="Another model than KGCF; `kgcf models` lists them.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder of the run [default: runs/NAME-PRESET].")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with settings on top of the preset.")] = None,
    changes: SetOption = None,
    no_memory: Annotated[
        bool, typer.Option("--no-memory", help="Paths alone: the same as --set memory.enabled=off.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Sets every seed of the training that --set leaves [default: 0].")
    ] = None,
    time: TimeOption = AUTO,
    names: NamesOption = None,
    header: HeaderOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    split_seed: SplitSeedOption = 0,
    allow_inverse_leak: LeakOption = False,
    device: DeviceOption = CPU,
) -> None:
    """Train a model on a benchmark, a folder or a file of triples, and evaluate it."""
    started = monotonic()
    if no_memory and any(change.partition("=")[0].strip() == "memory.enabled" for change in changes or ()):
        raise SettingsError("--no-memory and --set memory.enabled=… say the same setting twice: leave one of them out.")
    with importing():
        from kgcf.pipeline import fit
        from kgcf.runs.baselines import choose_model
        from kgcf.runs.folder import RunFolder
        from kgcf.training.distributed import join_world
    world = join_world()
    dataset = open_data(
        data, names, Reading(header, comment, strip), split_seed, allow_inverse_leak, quiet=not world.leads
    )
    named, baseline = choose_model(model, preset, config)
    folder = RunFolder(output or Path("runs") / f"{dataset.name.replace(':', '_')}-{named}")

    def work(execution: "Execution") -> "Run":
        chosen = [*(changes or ()), *(["memory.enabled=off"] if no_memory and baseline is None else [])]
        given = partial(fit, preset=preset, config=config, changes=chosen, seed=seed, time=time, model=model)
        return given(dataset, folder.path, execution=replace(execution, started=started), device=device)

    _train(folder, world, work)


def resume_command(run: RunArgument, device: DeviceOption = CPU) -> None:
    """Continue a run that was stopped or killed, to the same weights as without the stop."""
    with importing():
        from kgcf.pipeline import resume
        from kgcf.runs.folder import RunFolder
        from kgcf.training.distributed import join_world
    _train(RunFolder(run), join_world(), lambda execution: resume(run, execution, device))


def _train(folder: "RunFolder", world: "World", work: "Callable[[Execution], Run]") -> None:
    """Train with somebody watching, and report."""
    run = train_watched(folder, world, work)
    if world.leads:
        _report(run)


def train_watched(folder: "RunFolder", world: "World", work: "Callable[[Execution], Run]") -> "Run":
    """Train with somebody watching; on Ctrl-C say how to go on."""
    with importing():
        from kgcf.pipeline import Execution
        from kgcf.runs.watch import Watcher
        from kgcf.training.distributed import leave_world
    try:
        with Watcher(shown=world.leads) as watcher:
            return work(Execution(watcher, watcher.say, world))
    except KeyboardInterrupt:
        message = "Stopped before anything was written."
        if folder.file("run.json").is_file():
            message = f"Stopped; nothing is lost. Continue with: kgcf resume {shlex.quote(str(folder.path))}"
        Screen(stderr=True, wrap=False).print(cell(message))
        sys.exit(130)
    finally:
        leave_world()


def _report(run: "Run") -> None:
    """Show what the test says, and what can be done next."""
    from kgcf.cli.evaluation_tables import evaluation_table, result_rows, show_calibration
    from kgcf.pipeline import evaluate_on_test
    from kgcf.progress import showing

    with showing("test", 2 * len(run.data.test)) as advance:
        result = evaluate_on_test(run, advance)
    if result is not None:
        Screen().print(evaluation_table(result_rows(result)))
        if run.calibration is not None:
            show_calibration(run.calibration)
    folder_path = run.folder.path
    Screen(wrap=False).print(
        cell(f"The run is in {folder_path}. Next: kgcf predict {shlex.quote(str(folder_path))} --head … --relation …")
    )
