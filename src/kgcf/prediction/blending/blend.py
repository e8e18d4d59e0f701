"""A blend: how much a run's memory counts beside its paths, and why so much. What `blend.json` holds."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kgcf.errors import StorageError
from kgcf.storage import write_json

FILE = "blend.json"
FORMAT = 1


@dataclass(frozen=True)
class Blend:
    """logit = path logit + weight of the relation · memory's opinion, and for an unreached answer + `unreached`.

    A weight of 0 leaves the question to the paths, bit for bit.
    """

    used: bool
    reason: str  # a sentence: what cross-validation found
    weights: tuple[float, ...] = ()  # [2R] by relation, inverse ones included
    common: float = 0.0  # the weight of all questions together, towards which relations are shrunk
    shrinkage: float | None = None  # questions that the common weight counts for; None: one weight for all
    unreached: float = 0.0  # what an answer that no path reaches loses, where memory has a say
    figures: Mapping[str, float] = field(default_factory=dict)  # validation MRR: paths, memory, both, gain, …
    training: Mapping[str, Any] = field(default_factory=dict)  # how the memory was trained

    def write(self, path: Path) -> None:
        """Write it as JSON, atomically."""
        write_json(path, {"format": FORMAT, **asdict(self)})


def read_blend(path: Path) -> Blend:
    """What `Blend.write` wrote."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values.pop("format") > FORMAT:
            raise StorageError(f"{path} was written by a newer kgcf. Upgrade kgcf.")
        values["weights"] = tuple(float(weight) for weight in values["weights"])
        return Blend(**values)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"{path} is damaged ({type(error).__name__}: {error}). Restore it from a copy.") from error
