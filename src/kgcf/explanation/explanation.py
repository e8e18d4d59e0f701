"""An explanation with names instead of numbers: what people read and programs parse."""

from dataclasses import asdict, dataclass
from typing import Any

from kgcf.choices import Asked as Asked
from kgcf.data.vocabulary import name_and_label
from kgcf.explanation.deletion import Removed
from kgcf.explanation.importance import Attribution
from kgcf.explanation.paths import Layers, Weighting
from kgcf.prediction.calibration.fitting import Method

FORMAT = 1  # of the JSON


@dataclass(frozen=True)
class Named:
    """An entity or relation: its label in the data, and the name that people read."""

    label: str
    name: str
    ambiguous: bool = False  # whether others have the name too, so that only the label tells them apart

    @property
    def shown(self) -> str:
        """The name, followed by the label where the name is ambiguous."""
        return name_and_label(self.name, self.label) if self.ambiguous else self.name

    @property
    def full(self) -> str:
        """The name, followed by the label where that is something else."""
        return name_and_label(self.name, self.label)


@dataclass(frozen=True)
class NamedEdge:
    """One edge as the path travels it; `inverse`: the triple itself is (tail, relation, head)."""

    head: Named
    relation: Named
    inverse: bool
    tail: Named
    importance: float
    factual_treatment: bool | None = None  # T^F under the edge's own relation; None: not asked for
    counterfactual_treatment: bool | None = None

    @property
    def arrow(self) -> str:
        """`—relation→`, or `←relation—` for an edge that is travelled against its direction."""
        return f"←{self.relation.shown}—" if self.inverse else f"—{self.relation.shown}→"


@dataclass(frozen=True)
class NamedPath:
    """A path from the entity asked about to the answer."""

    weight: float
    edges: tuple[NamedEdge, ...]

    def __str__(self) -> str:
        return " ".join([self.edges[0].head.shown, *(f"{edge.arrow} {edge.tail.shown}" for edge in self.edges)])


@dataclass(frozen=True)
class NamedSubstitute:
    """The nearest pair with the other treatment: would (head, relation, tail) be known there?"""

    head: Named
    tail: Named
    distance: float
    known: bool
    factual_treatment: bool  # of the pair itself
    counterfactual_treatment: bool


@dataclass(frozen=True)
class NamedEvidence:
    """Counterfactual evidence, see `CounterfactualEvidence`."""

    treatment: str  # how entities are labelled: core_number, …
    factual_treatment: bool
    counterfactual_treatment: bool
    factual_probability: float  # of the triple itself, as are all probabilities here
    counterfactual_probability: float  # under T^CF; that of T^F where no pair has the other treatment
    treated_probability: float  # under T = 1
    untreated_probability: float  # under T = 0
    individual_effect: float  # p(T = 1) − p(T = 0)
    substitute: NamedSubstitute | None

    @property
    def other_probability(self) -> float:
        """That of the triple itself under the treatment that it does not have."""
        return self.untreated_probability if self.factual_treatment else self.treated_probability


@dataclass(frozen=True)
class NamedDeletion:
    """What removing the edges of a path does to the score."""

    removed: Removed
    path: NamedPath
    logit: float
    probability: float
    drop: float  # of the logit
    reached: bool


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
    probability_from: Method  # `platt` or `isotonic` where the run is calibrated, else `sigmoid`
    reached: bool  # whether any path leads from one end to the other
    weighting: Weighting  # a path weighs the mean or the sum of its edges
    layers: Layers  # an edge counts in the layer of its step, or in all layers
    attribution: Attribution  # the importance of an edge is a gradient, or one integrated from no edges to all
    paths: tuple[NamedPath, ...]
    bound: float | None  # None: exactly the best paths; else the search stopped, and a missed path weighs at most this
    counterfactual: NamedEvidence | None  # None: the model has no treatment
    deletion: tuple[NamedDeletion, ...]  # none without a path, or where the check was not asked for

    @property
    def triple(self) -> str:
        """The triple as people read it."""
        return f"{self.head.shown} —{self.relation.shown}→ {self.tail.shown}"

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        return {"format": FORMAT, **asdict(self)}
