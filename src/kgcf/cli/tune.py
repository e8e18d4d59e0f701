"""`kgcf tune DATA`: search α, β and any other setting on validation; a stopped search goes on where it was."""

import itertools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
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
from kgcf.cli.study import Space, Study, Trial, describe_search
from kgcf.cli.train import SetOption
from kgcf.cli.train_line import train_line
from kgcf.config import benchmark_note, configure, seeds_of
from kgcf.data.dataset import Dataset
from kgcf.data.reading_options import Reading
from kgcf.errors import DataError, SettingsError
from kgcf.machine.devices import CPU
from kgcf.pipeline import Surroundings, fit, resume
from kgcf.runs.settling import settle
from kgcf.runs.watch import Told
from kgcf.screen import Screen, cell
from kgcf.training.loop import TrainingError

_WEIGHTS = ("0.001", "0.01", "0.1", "1.0")
_DEFAULT_SPACE: Space = {"objective.alpha": _WEIGHTS, "objective.beta": _WEIGHTS}


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
    names: NamesOption = None,
    header: HeaderOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    split_seed: SplitSeedOption = 0,
    allow_inverse_leak: LeakOption = False,
    device: DeviceOption = CPU,
) -> None:
    """Search settings on validation MRR, kept in an optuna study; test triples are not looked at."""
    dataset = open_data(data, names, Reading(header, comment, strip), split_seed, allow_inverse_leak)
    if not len(dataset.valid):
        raise DataError(f"{dataset.name} has no validation triples, so settings cannot be compared.")
    space = dict(map(_parse_search, search)) if search else dict(_DEFAULT_SPACE)
    fixed = list(changes or ())
    for key, values in space.items():
        for value in values:
            settle(configure(preset, dataset.benchmark, None, [*fixed, f"{key}={value}"]), dataset)
    say_notes(filter(None, [benchmark_note(dataset.benchmark)]))
    about = describe_search(dataset, preset, configure(preset, dataset.benchmark, None, fixed), space, seed)
    study = Study(output, space, about)
    searching = _Search(output, dataset, preset, fixed, device)
    planned = _combinations(space, seed)[:trials]
    for number in range(len(study.trials()), len(planned)):
        study.add(searching.train(number, planned[number]))
        Screen(stderr=True).print(f"{number + 1} of {len(planned)} trials done", style="dim")
    _report(study.trials(), space)
    options: dict[str, object] = {
        "--preset": preset,
        "--names": names,
        "--header": header,
        "--comment": comment,
        "--strip": strip,
    }
    options |= {"--split-seed": split_seed, "--allow-inverse-leak": allow_inverse_leak, "--device": device}
    _say_best(study.trials(), searching, data, options)


def _parse_search(text: str) -> tuple[str, tuple[str, ...]]:
    key, sign, values = text.partition("=")
    if not sign or not values:
        raise SettingsError(f"'{text}' should be section.key=value,value for example encoder.layers=4,6.")
    return key.strip(), tuple(dict.fromkeys(value.strip() for value in values.split(",")))


def _combinations(space: Space, seed: int) -> list[dict[str, str]]:
    """All combinations of values in the order in which they are tried."""
    listed = [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]
    return [listed[place] for place in np.random.default_rng(seed).permutation(len(listed)).tolist()]


@dataclass(frozen=True)
class _Search:
    """Trains combinations, each in a folder of its own."""

    output: Path
    data: Dataset
    preset: str
    changes: Sequence[str]
    device: str

    def changes_of(self, values: Mapping[str, str]) -> list[str]:
        """All that a combination changes about the preset."""
        return [*self.changes, *(f"{key}={value}" for key, value in values.items())]

    def train(self, number: int, values: dict[str, str]) -> Trial:
        """Train one combination, or continue where its training was stopped."""
        folder, around = self.output / f"trial-{number}", Surroundings(Told())
        changes = self.changes_of(values)
        try:
            if (folder / "run.json").is_file():
                run = resume(folder, around, self.device)
            else:
                shutil.rmtree(folder, ignore_errors=True)  # a folder of ours whose making was stopped
                run = fit(self.data, folder, preset=self.preset, changes=changes, around=around, device=self.device)
        except TrainingError as error:
            return Trial(values, folder.name, None, str(error))
        history = run.folder.facts()["history"]
        assert isinstance(history, dict)
        return Trial(values, folder.name, float(history["best_validation_mrr"]))


def _report(trials: Sequence[Trial], space: Space) -> None:
    table = Table(title="best validation MRR of every trial", title_justify="left", box=None, header_style="bold")
    for title in ("trial", *space, "validation MRR"):
        table.add_column(cell(title), justify="right")
    for trial in sorted(trials, key=lambda t: -1.0 if t.score is None else t.score, reverse=True):
        score = "failed" if trial.score is None else f"{trial.score:.4f}"
        table.add_row(trial.folder.removeprefix("trial-"), *(cell(trial.values[key]) for key in space), score)
    screen = Screen(wrap=False)
    screen.print(table)
    for trial in trials:
        if trial.score is None:
            screen.print(cell(f"{trial.folder}: {trial.reason}"))


def _say_best(trials: Sequence[Trial], search: _Search, data: str, options: Mapping[str, object]) -> None:
    """Where the best trial is, and the command that trains with its settings; the seed, where all seeds are one."""
    done = [trial for trial in trials if trial.score is not None]
    if not done:
        return
    best = max(done, key=lambda trial: trial.score or 0.0)
    changes = search.changes_of(best.values)
    seeds = set(seeds_of(configure(search.preset, search.data.benchmark, None, changes)).values())
    seed = {"--seed": seeds.pop() if len(seeds) == 1 else None}
    screen = Screen(wrap=False)
    screen.print(cell(f"The best trial is the run {search.output / best.folder}. To train with its settings again:"))
    screen.print(cell(train_line(data, {**options, **seed}, changes)))
