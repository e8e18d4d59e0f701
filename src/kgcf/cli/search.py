"""The search of `kgcf tune`: combinations of settings, trained one after the other and ranked by validation MRR."""

import itertools
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from kgcf.cli.options import say_notes
from kgcf.cli.study import Space, Study, Trial, describe_search
from kgcf.cli.tables import Column, DataTable, show_table
from kgcf.cli.train_line import train_line
from kgcf.config import benchmark_note, configure, seeds_of
from kgcf.data.dataset import Dataset
from kgcf.durations import AUTO, NONE
from kgcf.errors import DataError, SettingsError, TrainingError
from kgcf.pipeline import Execution, fit, resume
from kgcf.prediction.blending.blend import FILE as BLEND
from kgcf.prediction.blending.blend import read_blend
from kgcf.runs.folder import RunFolder
from kgcf.runs.run import Run
from kgcf.runs.settling import settle
from kgcf.runs.time_budget import chosen_changes
from kgcf.runs.watch import Told
from kgcf.screen import Screen, cell
from kgcf.training.choice import TimeError

NO_MEMORIES = "Trials have no memory: none of its settings is searched, and trials are compared by paths."
_WEIGHTS = ("0.001", "0.01", "0.1", "1.0")
PATHS_ALONE = (
    "Memory is off: this is a trial of a search among settings of the paths, and trials are compared by paths alone."
)
_DEFAULT_SPACE: Space = {"objective.alpha": _WEIGHTS, "objective.beta": _WEIGHTS}


def parse_searches(texts: Iterable[str] | None) -> Space:
    """What --search names, each `section.key=value,value`; α and β where it names nothing."""
    return dict(map(_parse_search, texts)) if texts else dict(_DEFAULT_SPACE)


@dataclass(frozen=True)
class Search:
    """Trains combinations of settings, each in a folder of its own, and remembers what came of them."""

    output: Path
    data: Dataset
    preset: str
    changes: Sequence[str]
    device: str
    time: str = AUTO  # of every trial

    def run(self, space: Space, trials: int, seed: int) -> Trial | None:
        """Check every setting, try what was not tried yet, and report; the best trial, if any could be trained."""
        if not len(self.data.valid):
            raise DataError(f"{self.data.name} has no validation triples, so settings cannot be compared.")
        benchmark = self.data.benchmark
        for key, values in space.items():
            for value in values:
                settle(configure(self.preset, benchmark, None, [*self.changes, f"{key}={value}"]), self.data)
        say_notes(filter(None, [benchmark_note(benchmark)]))
        start = configure(self.preset, benchmark, None, self.changes)
        study = Study(self.output, space, describe_search(self.data, self.preset, start, space, seed, self.time))
        planned = _combinations(space, seed)[:trials]
        for number in range(len(study.trials()), len(planned)):
            study.add(self.train(number, planned[number]))
            Screen(stderr=True).print(f"{number + 1} of {len(planned)} trials done", style="dim")
        _report(study.trials(), space)
        done = [trial for trial in study.trials() if trial.score is not None]
        return max(done, key=lambda trial: trial.score or 0.0) if done else None

    def say_best(self, best: Trial, data: str, options: Mapping[str, object]) -> None:
        """Where the best trial is, and the command that trains with its settings; the seed, where all seeds are one."""
        run = RunFolder(self.output / best.folder)
        changes = self.changes_of(best.values)
        if run.survey() is not None:  # what was chosen for the time is said, so that no other survey chooses again
            changes += chosen_changes(run.settings())
            options = {**options, "--time": NONE}
        seeds = set(seeds_of(configure(self.preset, self.data.benchmark, None, changes)).values())
        seed = {"--seed": seeds.pop() if len(seeds) == 1 else None}
        screen = Screen(stderr=True, wrap=False)
        screen.print(cell(f"The best trial is the run {self.output / best.folder}. To train with its settings again:"))
        screen.print(cell(train_line(data, {**options, **seed}, changes)))
        if run.sealed(BLEND) and read_blend(run.file(BLEND)).reason == PATHS_ALONE:
            adding = f"kgcf blend {shlex.quote(str(run.path))} --memory --output …"
            screen.print(
                cell(f"{NO_MEMORIES} This command trains one where it helps; so does, for the trial, {adding}")
            )

    def changes_of(self, values: Mapping[str, str]) -> list[str]:
        """All that a combination changes about the preset."""
        return [*self.changes, *(f"{key}={value}" for key, value in values.items())]

    def train(self, number: int, values: dict[str, str]) -> Trial:
        """Train one combination, or continue where its training was stopped."""
        folder = self.output / f"trial-{number}"
        execution = Execution(Told(), without_memory="" if _about_memory(values) else PATHS_ALONE)
        changes = self.changes_of(values)
        try:
            if (folder / "run.json").is_file():
                run = resume(folder, execution, self.device)
            else:
                shutil.rmtree(folder, ignore_errors=True)  # a folder of ours whose making was stopped
                wanted = partial(fit, preset=self.preset, changes=changes, time=self.time, device=self.device)
                run = wanted(self.data, folder, execution=execution)
        except (TrainingError, TimeError) as error:
            return Trial(values, folder.name, None, str(error))
        return Trial(values, folder.name, _validation_mrr(run, values))


def _about_memory(searched: Iterable[str]) -> bool:
    """Whether any setting of the memory is searched: only then do trials need one to be compared."""
    return any(key.startswith("memory.") for key in searched)


def _validation_mrr(run: Run, values: Iterable[str]) -> float:
    """That of the best epoch, which is one of paths; of paths and memory where settings of the memory are searched."""
    if _about_memory(values) and run.folder.sealed(BLEND):
        blend = read_blend(run.folder.file(BLEND))
        if blend.figures:
            return float(blend.figures["both" if blend.used else "paths"])
    history = run.folder.facts()["history"]
    assert isinstance(history, dict)
    return float(history["best_validation_mrr"])


def _parse_search(text: str) -> tuple[str, tuple[str, ...]]:
    key, sign, values = text.partition("=")
    if not sign or not values:
        raise SettingsError(f"'{text}' should be section.key=value,value for example encoder.layers=4,6.")
    return key.strip(), tuple(dict.fromkeys(value.strip() for value in values.split(",")))


def _combinations(space: Space, seed: int) -> list[dict[str, str]]:
    """All combinations of values in the order in which they are tried."""
    listed = [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]
    return [listed[position] for position in np.random.default_rng(seed).permutation(len(listed)).tolist()]


def _report(trials: Sequence[Trial], space: Space) -> None:
    titles = ("trial", *space, "validation MRR")
    table = DataTable([Column(title, right=True) for title in titles], title="best validation MRR of every trial")
    for trial in sorted(trials, key=lambda t: -1.0 if t.score is None else t.score, reverse=True):
        number, score = trial.folder.removeprefix("trial-"), "failed" if trial.score is None else f"{trial.score:.4f}"
        table.rows.append([number, *(trial.values[key] for key in space), score])
    show_table(table)
    screen = Screen(stderr=True, wrap=False)
    for trial in trials:
        if trial.score is None:
            screen.print(cell(f"{trial.folder}: {trial.reason}"))
