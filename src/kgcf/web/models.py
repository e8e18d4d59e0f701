"""What the pages show and their JSON twins return: plain frozen values around `Answer`, `Named` and the review."""

from dataclasses import dataclass, field
from typing import Any, Literal

from kgcf.data.vocabulary import Named
from kgcf.prediction.answers import Answer
from kgcf.web.background import Progress
from kgcf.web.review.precision import Precisions
from kgcf.web.review.store import ReviewedLink, State

Kind = Literal["entity", "relation"]
Part = Literal["head", "relation", "tail"]


@dataclass(frozen=True)
class RunSummary:
    """A run of this server."""

    key: str  # in addresses
    name: str
    dataset: str
    preset: str
    entities: int
    relations: int
    facts: int  # that answers may see


@dataclass(frozen=True)
class Hit:
    """An entity or relation whose name fits."""

    kind: Kind
    label: str
    name: str
    ambiguous: bool  # others have the name too
    facts: int
    reference: str  # stands for it in addresses


@dataclass(frozen=True)
class SearchResult:
    """What was found for a text."""

    text: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True)
class FactGroup:
    """The facts of an entity under one relation, on one side of it."""

    relation: Named
    side: Literal["head", "tail"]  # where the entity stands
    count: int
    others: tuple[Named, ...]  # the first of those at the other end


@dataclass(frozen=True)
class EntityFacts:
    """What is known of an entity."""

    entity: Named
    reference: str
    facts: int
    groups: tuple[FactGroup, ...]


@dataclass(frozen=True)
class MissingLinks:
    """The likeliest missing triples of an entity, as `complete` would propose them."""

    entity: Named
    answers: tuple[Answer, ...]
    meaning: str  # of the probabilities


@dataclass(frozen=True)
class QuestionAnswers:
    """A question with one part left out, and its answers."""

    head: Named | None
    relation: Named | None
    tail: Named | None
    asked: Part
    top: int
    known: bool  # whether known answers are shown
    min_probability: float
    answers: tuple[Answer, ...]
    hidden_by_probability: int  # of the `top` answers, those below the minimum


@dataclass(frozen=True)
class Curve:
    """Points of a picture, in the order in which a line joins them."""

    title: str
    points: tuple[tuple[float, float], ...]
    sizes: tuple[float, ...] = ()  # of the points, where they differ


@dataclass(frozen=True)
class RunReport:
    """All that is known of a run."""

    summary: RunSummary
    folder: str
    notes: tuple[str, ...]
    splits: dict[str, int]
    settings: dict[str, Any]
    metrics: dict[str, float]  # headline; empty where the run was not evaluated on test
    intervals: dict[str, tuple[float, float]]
    parts: dict[str, dict[str, float]]  # the same of what answers together, each alone: paths, memory, or runs
    memory: str  # whether memory is used and why, in a sentence; empty where none was to be
    by_relation: dict[str, dict[str, float]]
    protocol: dict[str, Any]
    learning: Curve
    best_epoch: int | None
    losses: tuple[Curve, ...]
    calibration: str  # in a sentence
    calibration_figures: dict[str, float]
    reliability: tuple[Curve, ...]
    diagnosing: Progress
    diagnostics: dict[str, Any] | None = field(default=None)  # None until they are computed, or without treatment


@dataclass(frozen=True)
class ReviewList:
    """Links to judge, and what was said so far."""

    state: State
    relation: str | None  # label
    min_probability: float
    first: int  # of the links shown, counted from 0
    total: int  # that fit the choice
    links: tuple[ReviewedLink, ...]
    counts: dict[str, int]  # by state
    precision: Precisions
    progress: Progress
