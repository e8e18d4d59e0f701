"""Runs beside each other: what each was asked to do, how it learnt, what it reached."""

import json
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from kgcf.config import Settings
from kgcf.errors import StorageError
from kgcf.prediction.blending.blend import FILE as BLEND
from kgcf.prediction.blending.blend import read_blend
from kgcf.runs.ensemble import FILE as ENSEMBLE
from kgcf.runs.ensemble import read_ensemble
from kgcf.runs.folder import RunFolder

_SHOWN = ("mrr", "mr", "hits@1", "hits@3", "hits@10")


@dataclass(frozen=True)
class RunRecord:
    """What a run folder says about training and testing."""

    name: str
    dataset: str
    preset: str
    settings: Settings
    epochs: list[dict[str, float]]  # losses, validation MRR, seconds
    test: dict[str, float]  # empty where the run was not evaluated on test
    memory: str = "none"  # whether memory is used, in a few words

    @property
    def validation(self) -> list[tuple[float, float]]:
        """(epoch, validation MRR) of every epoch that was validated."""
        return [(entry["epoch"], entry["validation_mrr"]) for entry in self.epochs if "validation_mrr" in entry]

    @property
    def best(self) -> tuple[float, float] | None:
        """(epoch, validation MRR) of the model that was kept."""
        return max(self.validation, key=lambda point: point[1], default=None)

    @property
    def minutes(self) -> float:
        """Time spent on training steps and validation."""
        return sum(map(_minutes, self.epochs))

    @property
    def validation_minutes(self) -> list[float]:
        """When every validation was done, in minutes since training began."""
        ends = accumulate(map(_minutes, self.epochs))
        return [end for end, entry in zip(ends, self.epochs, strict=True) if "validation_mrr" in entry]


def read_record(path: Path) -> RunRecord:
    """Read one run, finished or not."""
    folder = RunFolder(path)
    folder.check()
    facts = folder.facts()
    return RunRecord(
        name=path.name,
        dataset=str(facts["dataset"]),
        preset=str(facts["preset"]) + _blended(folder),
        settings=folder.settings(),
        epochs=_epochs(folder, facts.get("history")),
        test=_test_figures(folder.file("results.json")),
        memory=_memory(folder),
    )


def _minutes(entry: dict[str, float]) -> float:
    """What an epoch took, with its validation."""
    return (entry["seconds"] + entry.get("validation_seconds", 0.0)) / 60


def _blended(folder: RunFolder) -> str:
    """Which runs answer together, where several do; the other rows are those of the first."""
    return f" (blend of {', '.join(read_ensemble(folder.path).names)})" if folder.file(ENSEMBLE).is_file() else ""


def _memory(folder: RunFolder) -> str:
    """Rank and weight of the memory where it is used."""
    if not folder.file(BLEND).is_file():
        return "none"
    blend = read_blend(folder.file(BLEND))
    gain = f" ({blend.figures['gain']:+.4f} on validation)" if "gain" in blend.figures else ""
    return f"rank {folder.settings().memory.rank}{gain}" if blend.used else f"not used{gain}"


def _epochs(folder: RunFolder, history: object) -> list[dict[str, float]]:
    """The history of a finished run; what the log has so far of another, where a resumed epoch may occur twice."""
    if isinstance(history, dict):
        return list(history["epochs"])
    log = folder.file("log.jsonl")
    text = log.read_text(encoding="utf-8") if log.is_file() else ""
    found = (_entry(line) for line in text.splitlines())
    by_epoch = {entry["epoch"]: entry for entry in found if entry is not None}
    return [by_epoch[epoch] for epoch in sorted(by_epoch)]


def _entry(line: str) -> dict[str, float] | None:
    """One epoch of the log; None for a line that a kill has cut."""
    try:
        entry: dict[str, float] = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and "epoch" in entry else None


def _test_figures(path: Path) -> dict[str, float]:
    """The headline figures of results.json where they are those of the test split."""
    if not path.is_file():
        return {}
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StorageError(f"{path} is damaged: {error}. Write it again with: kgcf evaluate {path.parent}") from error
    if results.get("protocol", {}).get("split") != "test":
        return {}
    return {name: float(results[name]) for name in _SHOWN}
