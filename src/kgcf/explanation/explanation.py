"""An explanation with names instead of numbers: what people read and programs parse."""

from dataclasses import asdict, dataclass
from typing import Any

from kgcf.data.vocabulary import Named
from kgcf.explanation.counterfactual import CounterfactualEvidence
from kgcf.explanation.deletion import Deletion
from kgcf.explanation.how import Asked, Attribution, Layers, Weighting
from kgcf.explanation.memory_evidence import MemoryEvidence
from kgcf.explanation.named_paths import NamedPath
from kgcf.explanation.outcome import Carried, Outcome
from kgcf.prediction.calibration.fitting import Method
from kgcf.screen import inert

FORMAT = 2  # of the JSON


@dataclass(frozen=True)
class Explanation:
    """Why a triple is predicted, or is not."""

    head: Named
    relation: Named
    tail: Named
    asked: Asked  # which end was the question; paths run from the other end
    known: bool  # in the observed graph, and hidden for the explanation
    hidden: int  # triples hidden
    logit: float
    probability: float  # the one that a prediction of this triple shows
    probability_from: Method  # `platt`, `isotonic` or `relation` where the run is calibrated, else `sigmoid`
    reached: bool  # whether any path leads from one end to the other
    attribution: Attribution  # how the paths were chosen
    weighting: Weighting  # a path weighs the mean or the sum of its edges
    layers: Layers  # an edge counts in the layer of its step, or in all layers
    paths: tuple[NamedPath, ...]  # by `removal` only reasons; otherwise the heaviest, whatever they do
    against: tuple[NamedPath, ...]  # without which the score rises; only by `removal`
    tried: int  # paths that were taken away, one at a time
    carried: Carried | None  # by the paths together; None without paths
    subsets: tuple[Outcome, ...]  # without every subset of the paths, bit i for path i; empty if not asked for
    bound: float | None  # the heaviest paths were searched and the search stopped: a missed one weighs at most this
    counterfactual: CounterfactualEvidence | None  # None: the model has no treatment
    deletion: tuple[Deletion[NamedPath], ...]  # none without a path, or where the check was not asked for
    runs: tuple[str, ...] = ()  # of a blend of runs: whose paths and memory are explained, then who else answers
    memory: MemoryEvidence | None = None  # None: the run has no memory that knows these entities

    @property
    def remembered(self) -> bool:
        """Whether a part of the score is memory's."""
        return self.memory is not None and self.memory.asked

    @property
    def triple(self) -> str:
        """The triple as people read it."""
        return f"{self.head.shown} —{self.relation.shown}→ {self.tail.shown}"

    @property
    def reasons(self) -> tuple[NamedPath, ...]:
        """The paths that speak for the triple: without them the score does not rise."""
        return tuple(path for path in self.paths if path.effect is None or not path.effect.against)

    @property
    def opposed(self) -> tuple[NamedPath, ...]:
        """The paths that speak against it: without them the score rises."""
        return (*(path for path in self.paths if path not in self.reasons), *self.against)

    def __str__(self) -> str:
        """The whole explanation in sentences: `print(run.explain(…))`."""
        from kgcf.explanation.words import sentences  # which imports this module

        return "\n".join(map(inert, sentences(self)))

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        return {"format": FORMAT, **asdict(self)}
