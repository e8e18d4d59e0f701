"""Computing cells: what is finished stays, what was interrupted goes on, what another process does is left to it."""

import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kgcf.data.dataset import Dataset
from kgcf.data.source import read
from kgcf.data.statistics import relation_categories
from kgcf.errors import KgcfError, StorageError
from kgcf.evaluation.metrics import SHORT_NAMES
from kgcf.evaluation.results import Evaluation
from kgcf.machine.provenance import provenance, running_commit
from kgcf.pipeline import Execution, fit, resume
from kgcf.reproduction.cells import Cell
from kgcf.reproduction.inference import measure_inference
from kgcf.reproduction.standing import changed_settings, shortly, standing_of
from kgcf.reproduction.store import Result, Store
from kgcf.reproduction.substitutes import show_substitutes
from kgcf.runs.folder import RunFolder
from kgcf.runs.run import Run
from kgcf.runs.watch import Told

Say = Callable[[str], None]
_SHOWN = ("mrr", "mr", "hits@1", "hits@3", "hits@10", "amri")


@dataclass
class Outcome:
    """What became of a list of cells."""

    computed: list[Cell] = field(default_factory=list)
    there: list[Cell] = field(default_factory=list)  # finished before
    outdated: list[Cell] = field(default_factory=list)  # finished before, with settings that have changed since
    elsewhere: list[Cell] = field(default_factory=list)  # another process works on them
    failed: list[tuple[Cell, str]] = field(default_factory=list)


def compute_cells(store: Store, cells: Iterable[Cell], say: Say, again: bool = False) -> Outcome:
    """Compute what is not there yet or damaged, with `again` also what is outdated; whatever fails is told of.

    A file that is there is replaced when the new result is finished, not before.
    """
    outcome = Outcome()
    running_commit()
    for cell in cells:
        if _leave(store, cell, again, outcome):
            continue
        with store.claimed(cell) as ours:
            if not ours:
                outcome.elsewhere.append(cell)
            elif not _leave(store, cell, again, outcome):  # another process may have finished it meanwhile
                _compute_one(store, cell, say, outcome)
    return outcome


def _leave(store: Store, cell: Cell, again: bool, outcome: Outcome) -> bool:
    """Whether a cell stays as it is; then the outcome has it."""
    word = standing_of(store, cell).word
    if word == "done":
        outcome.there.append(cell)
    elif word == "outdated" and not again:
        outcome.outdated.append(cell)
    else:
        return False
    return True


def _compute_one(store: Store, cell: Cell, say: Say, outcome: Outcome) -> None:
    """Compute a cell and keep its result; one in the way must not hold up hours of others."""
    before, started = standing_of(store, cell), time.monotonic()
    if before.word != "open":
        say(f"{cell.name} is computed again: {before.why}")
    try:
        store.write(cell, compute(cell, store, say))
    except Exception as error:  # also of a library: the others go on
        told = str(error) if isinstance(error, KgcfError) else f"{type(error).__name__}: {error}"
        outcome.failed.append((cell, told))
        say(f"{cell.name}: {told}")
        return
    shutil.rmtree(store.run_folder(cell), ignore_errors=True)
    outcome.computed.append(cell)
    say(f"{cell.name}: {time.monotonic() - started:.0f} s")


def compute(cell: Cell, store: Store, say: Say) -> Result:
    """The result of one cell."""
    if cell.kind == "inference":
        found = measure_inference(_data(cell.dataset), cell.variant.split(","), cell.limit)
    elif cell.kind == "distribution":
        found = _distribution(_data(cell.dataset))
    elif cell.kind == "substitutes":
        found = show_substitutes(_data(cell.dataset), cell)
    else:
        return _trained(cell, store, say)
    here = provenance()
    return {"dataset": cell.dataset, **found, "commit": here["commit"], "machine": here}


def _trained(cell: Cell, store: Store, say: Say) -> Result:
    """Train, or go on training, and rank the test triples."""
    folder, execution = store.run_folder(cell), Execution(Told())
    run = _continued(cell, folder, execution, say)
    if run is None:
        shutil.rmtree(folder, ignore_errors=True)  # one of ours whose making was stopped
        given: dict[str, Any] = {"model": cell.model} if cell.model != "kgcf" else {"preset": cell.preset}
        time_given = "none" if cell.seconds is None else cell.seconds
        given |= {"seed": cell.seed, "changes": cell.changes, "time": time_given}
        run = fit(_data(cell.dataset), folder, execution=execution, **given)
    return describe(cell, run, run.evaluate("test", limit=cell.limit))


def _continued(cell: Cell, folder: Path, execution: Execution, say: Say) -> Run | None:
    """A run of the cell that was interrupted, trained to its end; None: there is none that can go on."""
    if not (folder / "run.json").is_file():
        return None
    begun = RunFolder(folder).settings().model_dump(mode="json")
    if changed := changed_settings(cell, begun):
        say(f"{cell.name} was begun with other settings ({shortly(changed)}): it is trained anew")
        return None
    try:
        return resume(folder, execution)
    except StorageError as error:  # perhaps only the disk is full: what was trained is not ours to throw away
        raise StorageError(f"{error} To train this cell anew, delete {folder}.") from error


def describe(cell: Cell, run: Run, found: Evaluation) -> Result:
    """The metrics of a run with everything that they depend on."""
    history, here = run.folder.history(), provenance()
    result: Result = {
        "dataset": cell.dataset,
        "model": cell.model,
        "preset": cell.preset,
        "seed": cell.seed,
        "configuration": run.settings.model_dump(mode="json"),
        "commit": here["commit"],
        "metrics": {name: found[name] for name in SHORT_NAMES if name in _SHOWN},
        "intervals": {name: vars(interval) for name, interval in found.intervals.items()},
        "protocol": {key: value for key, value in found.protocol.items() if key not in ("training", "settings")},
        "times": {
            "training_seconds": found.protocol["training_seconds"],
            "evaluation_seconds": found.protocol["seconds"],
            "epochs": len(history),
        },
        "validation": [entry.get("validation_mrr") for entry in history],
        "per_relation": {
            relation: {"mrr": sides["both"]["inverse_harmonic_mean_rank"], "count": sides["both"]["count"]}
            for relation, sides in found.per_relation.items()
        },
        "train_triples": _train_counts(run.data),
        "machine": here,
    }
    if cell.ranks:
        result["ranks"] = [rank if rank % 1 else int(rank) for rank in found.ranks.realistic.tolist()]
    return result


@cache
def _data(name: str) -> Dataset:
    return read(name)


def _train_counts(data: Dataset) -> dict[str, int]:
    """How many train triples every relation has."""
    counts = np.bincount(data.graph.triples[:, 1], minlength=len(data.relations)).tolist()
    return dict(zip(data.relations.labels(), counts, strict=True))


def _distribution(data: Dataset) -> Result:
    """Triples of every relation in train and test, and its category."""
    test = np.bincount(data.test.queries[:, 1], minlength=len(data.relations)).tolist()
    categories = relation_categories(data.test.known)
    rows = zip(_train_counts(data).items(), test, categories, strict=True)
    return {
        "relations": {
            label: {"train": train, "test": tested, "category": str(category)}
            for (label, train), tested, category in rows
        }
    }
