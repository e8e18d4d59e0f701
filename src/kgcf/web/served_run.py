"""A run that stays loaded: model, graph, names, review, and the thread that computes for it."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kgcf.choices import Observed
from kgcf.prediction.answers import Question, predict
from kgcf.prediction.calibration.completed_links import CompletionCalibration, uncalibrated
from kgcf.prediction.completion import complete, plan_completion
from kgcf.prediction.entity_links import missing_links
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.progress import Advance
from kgcf.runs.folder import REVIEW
from kgcf.runs.run import Run
from kgcf.web.background import Background
from kgcf.web.lane import Attend, Lane
from kgcf.web.limits import LIMITS, Limits
from kgcf.web.name_index import NameIndex
from kgcf.web.review.store import ReviewStore

T = TypeVar("T")


def go_on() -> None:
    """Nobody has to be attended to."""


class AttendedGraph(ObservedGraph):
    """An observed graph that looks up before every scoring: an explanation that nobody waits for ends there."""

    def __init__(self, observed: ObservedGraph) -> None:
        self.__dict__.update(observed.__dict__)
        self.attend: Attend = go_on

    def for_another_thread(self, threads: int | None = 1) -> ObservedGraph:
        """The same for work that attends to nobody in the lane."""
        other = super().for_another_thread(threads)
        assert isinstance(other, AttendedGraph)
        other.attend = go_on
        return other

    def logits(self, *given: Any, **named: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:  # noqa: ANN401
        """As an observed graph has them."""
        self.attend()
        return super().logits(*given, **named)


class ServedRun:
    """Answers for one run; everything that computes goes through `lane` or `background`."""

    def __init__(self, key: str, run: Run, observed: Observed, review: Path, limits: Limits = LIMITS) -> None:
        self.key = key
        self.run = run
        self.limits = limits
        self.explainer = run.explainer(observed=observed)
        self.observed = AttendedGraph(self.explainer.observed)
        self.explainer.observed = self.observed
        graph = self.observed.graph
        self.entities = NameIndex(self.observed.entities, graph.degrees)
        counts = np.bincount(graph.triples[:, 1], minlength=graph.relation_count).astype(np.int64)
        self.relations = NameIndex(self.observed.relations, counts)
        self.lane = Lane(f"kgcf {key}", limits.waiting)
        self.background = Background()
        self.diagnosing = Background()
        self.diagnostics: dict[str, Any] | None = None  # of treatment and matching, once they are computed
        self.reviews = ReviewStore(review)

    @property
    def completion(self) -> CompletionCalibration:
        """How probabilities of proposed links are made: the run's calibration, else the plain sigmoid."""
        record = self.run.calibration
        return uncalibrated("seen") if record is None else record.links_by(self.observed.remembers)

    def compute(self, work: Callable[[Attend], T]) -> Callable[[Attend], T]:
        """Work for the lane, with a graph that attends to whoever asked."""

        def attended(attend: Attend) -> T:
            self.observed.attend = attend
            return work(attend)

        return attended

    def warm(self) -> None:
        """Compute one of everything, so that the first reader does not wait for compilers and caches."""

        def once(attend: Attend) -> None:
            head, relation, tail = self._some_triple()
            for question in (
                Question(head, relation, None),
                Question(None, relation, tail),
                Question(head, None, tail),
            ):
                predict(self.observed, question, 3, show_known=True)
            self.explainer.explain(head, relation, tail)
            missing_links(self.observed, self.entities.id_of(head), self.completion, 3, attend)

        self.lane.join(self.compute(once)).result.result()

    def propose(self, relations: Sequence[str] | None, top: int, min_probability: float) -> None:
        """Start completing the graph for review."""
        observed = self.observed.for_another_thread()
        task = plan_completion(observed, relations, every_entity=False)

        def work(advance: Advance) -> str:
            answers = complete(observed, task, top, min_probability, advance, self.completion)
            new = self.reviews.add(answers)
            return f"{len(answers):,} links proposed, {new:,} of them new."

        what = "all relations" if relations is None else ", ".join(f"“{name}”" for name in self._shown(relations))
        self.background.start(f"Proposing links of {what}", task.question_count, work)

    def close(self) -> None:
        """Stop all work."""
        self.background.stop()
        self.diagnosing.stop()
        self.lane.close()

    def _shown(self, relations: Sequence[str]) -> list[str]:
        return [self.relations.named(self.relations.id_of(label)).shown for label in relations]

    def _some_triple(self) -> tuple[str, str, str]:
        """A triple of the graph about which there is something to explain."""
        graph = self.observed.graph
        h, r, t = graph.triples[np.argmax(graph.degrees[graph.triples[:, 0]] > 1)].tolist()
        return self.observed.entities.label(h), self.observed.relations.label(r), self.observed.entities.label(t)


def open_runs(
    paths: Iterable[Path], observed: Observed = "all", device: str = "cpu", reviews: Path | None = None
) -> dict[str, ServedRun]:
    """Open runs under short keys for their addresses; reviews lie in each run, or in one folder for all."""
    served: dict[str, ServedRun] = {}
    for path in paths:
        key = _key(path.resolve().name, served)
        review = path / REVIEW if reviews is None else reviews / f"{key}.sqlite"
        run = Run.open(path, device)
        run.workspace = min(run.settings.training.memory_gb * 1e9, LIMITS.workspace)
        served[key] = ServedRun(key, run, observed, review)
    return served


def _key(name: str, taken: Iterable[str]) -> str:
    """A key of plain letters that no other run has."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    choices = (base, *(f"{base}-{number}" for number in range(2, 10_000)))
    return next(choice for choice in choices if choice not in set(taken))
