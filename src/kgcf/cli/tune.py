"""`kgcf tune DATA`: search α, β and any other setting on validation; a stopped search goes on where it was."""

import itertools
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer
from rich.table import Table

from kgcf.cli.options import (
    CommentOption,
    DataArgument,
    DeviceOption,
    HeaderOption,
    LeakOption,
    NamesOption,
    SplitSeedOption,
    StripOption,
    open_data,
    say_notes,
)
from kgcf.cli.train import SetOption
from kgcf.config import benchmark_note, configure
from kgcf.data.dataset import Dataset
from kgcf.data.reading import Reading
from kgcf.devices import CPU
from kgcf.errors import DataError, MissingExtraError, SettingsError, StorageError
from kgcf.pipeline import fit
from kgcf.screen import Screen, cell
from kgcf.settling import settle
from kgcf.storage import check_writable, make_folder

_WEIGHTS = ("0.001", "0.01", "0.1", "1.0")
_DEFAULT_SPACE: dict[str, tuple[str, ...]] = {"objective.alpha": _WEIGHTS, "objective.beta": _WEIGHTS}


P = ParamSpec("P")


def _with_sentences(command: Callable[P, None]) -> Callable[P, None]:
    """The command, with a sentence where its database cannot be read or written: sqlite has errors of its own."""

    @wraps(command)
    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            from optuna.exceptions import StorageInternalError
            from sqlalchemy.exc import SQLAlchemyError
        except ImportError:  # the command says so
            return command(*args, **kwargs)
        try:
            command(*args, **kwargs)
        except (SQLAlchemyError, StorageInternalError) as error:
            reason = getattr(error, "orig", None) or str(error).splitlines()[0]
            place = Path(str(kwargs.get("output"))) / "study.db"
            raise StorageError(
                f"The search could not be kept in {place}: {reason}. Trials that were finished are in it; repeat the "
                "command to go on, or choose another --output."
            ) from error

    return told


@_with_sentences
def tune_command(
    data: DataArgument,
    preset: Annotated[str, typer.Option(help="Where the search starts from.")] = "default",
    trials: Annotated[int, typer.Option(min=1, help="How many settings to try in all.")] = 16,
    search: Annotated[
        list[str] | None,
        typer.Option("--search", help="section.key=value,value,…; repeatable [default: alpha and beta]."),
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of the search; an existing one is continued.")] = Path(
        "runs/tune"
    ),
    changes: SetOption = None,
    seed: Annotated[int, typer.Option(help="Of the sampler.")] = 0,
    names: NamesOption = None,
    header: HeaderOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    split_seed: SplitSeedOption = 0,
    allow_inverse_leak: LeakOption = False,
    device: DeviceOption = CPU,
) -> None:
    """Search settings on validation MRR with optuna; test triples are not looked at."""
    dataset = open_data(data, names, Reading(header, comment, strip), split_seed, allow_inverse_leak)
    if not len(dataset.valid):
        raise DataError(f"{dataset.name} has no validation triples, so settings cannot be compared.")
    space = dict(map(_parse_search, search)) if search else dict(_DEFAULT_SPACE)
    for key, values in space.items():
        for value in values:
            settle(configure(preset, dataset.benchmark, None, [*(changes or ()), f"{key}={value}"]), dataset)
    say_notes(filter(None, [benchmark_note(dataset.benchmark)]))
    study = _study(output, dataset, preset, space, seed)
    most = len(list(itertools.product(*space.values())))
    while (done := _finished(study)) < min(trials, most):
        _try_one(study, output, dataset, preset, space, list(changes or ()), device)
        Screen(stderr=True).print(f"{done + 1} of {min(trials, most)} trials done", style="dim")
    _report(study, space)


def _parse_search(text: str) -> tuple[str, tuple[str, ...]]:
    key, sign, values = text.partition("=")
    if not sign or not values:
        raise SettingsError(f"'{text}' should be section.key=value,value for example encoder.layers=4,6.")
    return key.strip(), tuple(value.strip() for value in values.split(","))


def _study(output: Path, data: Dataset, preset: str, space: dict[str, tuple[str, ...]], seed: int) -> Any:  # noqa: ANN401
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("kgcf tune", "tune") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    make_folder(output)
    check_writable(output / "study.db.new")
    sampler = optuna.samplers.GridSampler({key: list(values) for key, values in space.items()}, seed=seed)
    study = optuna.create_study(
        study_name=f"{data.name} {preset} {data.graph.fingerprint[:12]}",
        storage=f"sqlite:///{output / 'study.db'}",
        sampler=sampler,
        direction="maximize",
        load_if_exists=True,
    )
    known = study.user_attrs.get("space")
    if known is not None and known != {key: list(values) for key, values in space.items()}:
        raise SettingsError(f"{output} holds a search over other values: {known}. Choose another --output.")
    study.set_user_attr("space", {key: list(values) for key, values in space.items()})
    return study


def _finished(study: Any) -> int:  # noqa: ANN401
    return sum(trial.state.name == "COMPLETE" for trial in study.trials)


def _try_one(
    study: Any,  # noqa: ANN401
    output: Path,
    data: Dataset,
    preset: str,
    space: dict[str, tuple[str, ...]],
    changes: list[str],
    device: str,
) -> None:
    """Train one combination in a folder of its own; an interrupted one is started again."""

    def objective(trial: Any) -> float:  # noqa: ANN401
        chosen = [f"{key}={trial.suggest_categorical(key, list(values))}" for key, values in space.items()]
        folder = output / f"trial-{trial.number}"
        run = fit(data, folder, preset=preset, changes=[*changes, *chosen], device=device)
        history = run.folder.facts()["history"]
        assert isinstance(history, dict)
        return float(history["best_validation_mrr"])

    study.optimize(objective, n_trials=1)


def _report(study: Any, space: dict[str, tuple[str, ...]]) -> None:  # noqa: ANN401
    table = Table(title="best validation MRR of every trial", title_justify="left", box=None, header_style="bold")
    for title in ("trial", *space, "validation MRR"):
        table.add_column(cell(title), justify="right")
    complete = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    for trial in sorted(complete, key=lambda t: -t.value):
        table.add_row(str(trial.number), *(cell(str(trial.params[key])) for key in space), f"{trial.value:.4f}")
    Screen().print(table)
