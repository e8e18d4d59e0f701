"""What makes a run of several runs: `ensemble.json` beside the first of them, the others in folders inside."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from kgcf.errors import StorageError
from kgcf.storage import write_json

FILE = "ensemble.json"
COMPANIONS = "companions"  # the folder of the others


@dataclass(frozen=True)
class EnsembleRecord:
    """The members by name, the one whose folder this is first, with what their logits are multiplied by."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    shares: tuple[float, ...]  # of the whole, once all members are on one scale; they sum to 1
    validation: tuple[float, ...]  # MRR of every member alone
    both: float  # of the blend, by shares chosen on other questions
    questions: int
    reason: str  # a sentence

    def write(self, folder: Path) -> None:
        """Write it into a run's folder."""
        write_json(folder / FILE, asdict(self))


def read_ensemble(folder: Path) -> EnsembleRecord:
    """What `EnsembleRecord.write` wrote."""
    path = folder / FILE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        lists = {name: tuple(values[name]) for name in ("names", "weights", "shares", "validation")}
        return EnsembleRecord(**{**values, **lists})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} is damaged ({type(error).__name__}: {error}). Blend the runs again.") from error


def companion_folder(folder: Path, number: int) -> Path:
    """Where the member of a number ≥ 1 is kept."""
    return folder / COMPANIONS / str(number)
