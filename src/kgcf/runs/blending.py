"""`kgcf blend`: several finished runs on the same data become one, with weights from validation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kgcf.data.dataset import Dataset
from kgcf.errors import SettingsError
from kgcf.prediction.blending.ensemble import ValidationScores, choose_shares, cross_validate_shares
from kgcf.prediction.calibration.calibrate import validation_task
from kgcf.progress import showing
from kgcf.runs.copying import assembled, copy_run
from kgcf.runs.ensemble import FILE as ENSEMBLE
from kgcf.runs.ensemble import EnsembleRecord, companion_folder
from kgcf.runs.folder import RunFolder
from kgcf.runs.run import Run

TRIPLES = 1000  # of validation, drawn at random, that choose the weights
_HELD = 2e9  # bytes of scores that are held together; fewer triples where this is not enough


def blend_runs(paths: Sequence[str | Path], output: str | Path, *, limit: int = TRIPLES, seed: int = 0) -> Run:
    """One run of several finished ones on the same data; `output` must be new, and holds copies of all of them."""
    if len(paths) < 2:
        raise SettingsError("A blend needs at least two runs. Name another one, or give this one a memory: --memory.")
    folder = RunFolder(Path(output))
    folder.check_free()
    runs = [Run.open(path) for path in paths]
    _check(runs)
    record, order = _weigh(runs, limit, seed)
    with assembled(folder.path) as hidden:
        for number, place in enumerate(order):
            copy_run(runs[place].folder, hidden if not number else companion_folder(hidden, number))
        record.write(hidden)
        RunFolder(hidden).seal()
        Run.open(hidden).calibrate(test=False)
    return Run.open(output)


def _check(runs: Sequence[Run]) -> None:
    """Refuse runs on different data, and blends of blends."""
    first = runs[0]
    for run in runs:
        if run.settings.baseline is not None:
            raise SettingsError(
                f"{run.folder.path} is a run of {run.settings.baseline.model}. Only runs of kgcf itself can be blended."
            )
        if run.folder.file(ENSEMBLE).is_file():
            raise SettingsError(f"{run.folder.path} is a blend itself. Give the runs that it was made of.")
        if not _same_data(run.data, first.data):
            raise SettingsError(
                f"{run.folder.path} was trained on other data than {first.folder.path}. A blend needs runs with the "
                "same train, validation and test triples."
            )
    if not len(first.data.valid):
        raise SettingsError(f"{first.data.name} has no validation triples, which choose the weights of a blend.")


def _same_data(one: Dataset, other: Dataset) -> bool:
    same = one.entities == other.entities and one.relations == other.relations
    graphs = one.graph.fingerprint == other.graph.fingerprint
    graphs = graphs and one.test.observed.fingerprint == other.test.observed.fingerprint
    pairs = zip(one.splits, other.splits, strict=True)
    return same and graphs and all(np.array_equal(a.queries, b.queries) for a, b in pairs)


def _weigh(runs: Sequence[Run], limit: int, seed: int) -> tuple[EnsembleRecord, list[int]]:
    """The record of a blend, its best member first, and the places of the members in that order."""
    task = validation_task(runs[0].data)
    fits = max(1, int(_HELD / (8 * len(runs) * task.observed.entity_count)))  # two questions a triple, 4 bytes
    members = [run.bind_task(task) for run in runs]
    asked = len(runs) * 2 * min(limit, fits, len(task))
    with showing("weighing runs", asked) as advance:
        scores = ValidationScores(members, task, min(limit, fits), seed, advance)
    count = len(runs)
    alone = [float(scores.reciprocal_ranks(np.eye(count)[k]).mean()) for k in range(count)]
    shares, both = choose_shares(scores, count), float(cross_validate_shares(scores, count, seed).mean())
    order = sorted(range(count), key=lambda k: (-shares[k], -alone[k], k))
    scale = scores.scales[order[0]]
    names = [runs[k].folder.path.name for k in order]
    return (
        EnsembleRecord(
            names=tuple(f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)),
            weights=tuple(float(shares[k]) * scale / scores.scales[k] for k in order),
            shares=tuple(float(shares[k]) for k in order),
            validation=tuple(alone[k] for k in order),
            both=both,
            questions=int(scores.questions.max()) + 1,
            reason=f"Validation MRR {both:.4f} by all, by shares chosen on other questions; {max(alone):.4f} by the "
            "best run alone.",
        ),
        order,
    )
