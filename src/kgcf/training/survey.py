"""What a survey of a graph found before training: reach, work and time of a pass by depth and negatives."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kgcf.training.cost_model import Work


@dataclass(frozen=True)
class PassCost:
    """A training pass with so many layers, negatives and edges of an update."""

    layers: int
    negatives: int
    work: Work
    milliseconds: float  # of the wall clock, with `threads` threads and all processes, per pass
    threads: int
    measured: bool  # by real steps; else by the cost model alone
    fan_in: int | None = None  # edges that an update aggregates at most; None: all


@dataclass(frozen=True)
class RankCost:
    """A question whose answers are ranked among all entities, with so many layers."""

    layers: int
    work: Work
    milliseconds: float
    measured: bool


@dataclass(frozen=True)
class Questions:
    """How many questions the stages after and beside training rank."""

    valid: int  # of all validation triples
    valid_triples: int
    calibration: int
    test: int


@dataclass(frozen=True)
class Survey:
    """All that the rule's choice depends on, besides the time and what the user fixed."""

    reach: tuple[float, ...]  # share of answers within 1, 2, … layers
    passes: tuple[PassCost, ...]
    ranks: tuple[RankCost, ...]
    questions: Questions
    sweep: int  # passes of one epoch
    batch: int  # passes of one step
    stages: Mapping[str, float] = field(default_factory=dict)  # seconds of what is neither training nor ranking
    seconds: float = 0.0  # what the survey took

    def ranking(self, layers: int) -> float:
        """Seconds that one question takes."""
        return next(rank.milliseconds for rank in self.ranks if rank.layers == layers) / 1e3

    def reached(self, layers: int) -> float:
        """The share of answers that so many layers reach."""
        return self.reach[min(layers, len(self.reach)) - 1]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Survey":
        """What `to_json` wrote."""
        passes = tuple(PassCost(**{**row, "work": Work(**row["work"])}) for row in values["passes"])
        ranks = tuple(RankCost(**{**row, "work": Work(**row["work"])}) for row in values["ranks"])
        known = {**values, "reach": tuple(values["reach"]), "questions": Questions(**values["questions"])}
        return cls(**{**known, "passes": passes, "ranks": ranks})
