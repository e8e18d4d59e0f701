"""What a survey of a graph found before training: reach, work and time of a pass by depth and negatives."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kgcf.plain_tables import text_table
from kgcf.training.cost_model import Work


@dataclass(frozen=True)
class PassCost:
    """A training pass with so many layers and negatives."""

    layers: int
    negatives: int
    work: Work
    milliseconds: float  # of the wall clock, with `threads` threads and all processes, per pass
    threads: int
    measured: bool  # by real steps; else by the cost model alone


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
    """All that the choice of layers, negatives and passes depends on, besides the time and what the user fixed."""

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


def survey_table(survey: Survey, chosen: tuple[int, int] | None = None) -> str:
    """A row per depth and number of negatives; an arrow at the choice, ~ where the cost model speaks alone."""
    titles = ("", "layers", "negatives", "within reach", "updates", "messages", "ms per pass", "ms per ranking")
    rows = [
        (
            "→" if (row.layers, row.negatives) == chosen else "",
            str(row.layers),
            str(row.negatives),
            f"{survey.reached(row.layers):.0%}",
            f"{row.work.updates:,.0f}",
            f"{row.work.messages:,.0f}",
            _time(row.milliseconds, row.measured),
            _time(survey.ranking(row.layers) * 1e3, _ranked(survey, row.layers)),
        )
        for row in survey.passes
    ]
    return text_table(titles, rows, ("<", *(">" for _ in titles[1:])))


def _ranked(survey: Survey, layers: int) -> bool:
    return any(rank.measured for rank in survey.ranks if rank.layers == layers)


def _time(milliseconds: float, measured: bool) -> str:
    return f"{'' if measured else '~'}{milliseconds:.{1 if milliseconds >= 10 else 2}f}"
