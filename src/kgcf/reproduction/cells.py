"""A cell: one thing to compute, with everything that decides its outcome; its name says what, its key says exactly."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["train", "inference", "distribution", "substitutes"]
Scale = Literal["quick", "default", "full"]
SCALES: tuple[Scale, ...] = ("full", "default", "quick")  # the most telling first
_NOT_IN_KEY = ("variant",)


@dataclass(frozen=True)
class Cell:
    """What is trained or measured on which data; `variant` is what tables call it."""

    kind: Kind
    dataset: str
    variant: str
    model: str = "kgcf"  # as `kgcf models` lists it
    preset: str = "default"  # of KGCF
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings, section.key=value
    seconds: float | None = None  # of training; None: as the settings say
    limit: int | None = None  # triples that are asked about; None: all
    ranks: bool = False  # whether the result keeps the rank of every answer, for paired tests

    @property
    def key(self) -> str:
        """A hash of everything that decides the outcome."""
        facts = {name: value for name, value in asdict(self).items() if name not in _NOT_IN_KEY}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:10]

    @property
    def name(self) -> str:
        """What its files are called."""
        model = self.preset if self.model == "kgcf" else self.model
        return f"{self.kind}-{self.dataset.replace(':', '_')}-{model}-s{self.seed}-{self.key}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"changes": list(self.changes)}
