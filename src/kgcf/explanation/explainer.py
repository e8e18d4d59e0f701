"""`Explainer`: paths, what they carry, and counterfactual evidence for any triple, names in and names out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgcf.causal.counterfactual import Candidates
from kgcf.causal.embedding import EntitySpace
from kgcf.data.hiding import Remove
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.counterfactual import EdgeTable, Matching, find_edge_treatments, find_evidence
from kgcf.explanation.deletion import Deletion, check_deletion
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.how import How
from kgcf.explanation.memory_evidence import find_memory_evidence
from kgcf.explanation.named_paths import NamedPath, name_path
from kgcf.explanation.necessity import (
    Tried,
    choose_paths,
    path_effects,
    remove_subsets,
    score_sets,
    try_candidates,
    try_paths,
)
from kgcf.explanation.outcome import Carried, Outcome, PathEffect
from kgcf.explanation.paths import Path
from kgcf.prediction.observed_graph import ObservedGraph

MOST_TOGGLED = 6  # paths of which every subset is removed: 2^6 scores
MOST_AGAINST = 3  # paths shown that speak against the triple
HOW = How()


@dataclass(frozen=True, eq=False)
class ChosenPaths:
    """The paths of an explanation, by number, and what they do."""

    paths: tuple[Path, ...]
    effects: tuple[PathEffect, ...]
    against: tuple[Path, ...]
    against_effects: tuple[PathEffect, ...]
    tried: int
    bound: float | None


class Explainer:
    """Explains predictions of a model on one observed graph.

    `find_space` gives the entity space when the first counterfactual is asked for; a model without treatment needs
    none, and its explanations say that they have no counterfactual. Probabilities are those of the predictions:
    calibrated where the run is.
    """

    def __init__(
        self,
        observed: ObservedGraph,
        remove: Remove,
        find_space: Callable[[], EntitySpace],
        candidates: Candidates = "observed",
    ) -> None:
        self.observed = observed
        self._remove: Remove = remove
        self._find_space = find_space
        self._candidates: Candidates = candidates

    def explain(self, head: str, relation: str, tail: str, how: How = HOW) -> Explanation:
        """Explain a triple as an answer to (head, relation, ?), or to (?, relation, tail) if the head is asked for."""
        entities, relations = self.observed.entities, self.observed.relations
        h, t = entities.id(head, "entity"), entities.id(tail, "entity")
        r = relations.id(relation, "relation")
        question = (h, r, t) if how.asked == "tail" else (t, r + len(relations), h)
        return self.explain_case(self.case(*question, how), how)

    def case(self, head: int, relation: int, tail: int, how: How = HOW) -> Case:
        """Open a case by ids; a relation ≥ R asks for the head of r − R, whatever `how` says."""
        importance = "gradient" if how.attribution == "removal" else how.attribution
        return open_case(self.observed, head, relation, tail, self._remove, how.layers, importance)

    def explain_case(self, case: Case, how: How = HOW) -> Explanation:
        """All there is to say about a case."""
        chosen = find_paths(case, how)
        matching = self._matching if case.treated is not None else None
        every = (*chosen.paths, *chosen.against)
        edges: EdgeTable = {} if matching is None else find_edge_treatments(case, matching, every)

        def show(path: Path, effect: PathEffect | None = None) -> NamedPath:
            return name_path(self.observed, path, edges, effect)

        h, r, t = case.triple
        return Explanation(
            head=self.observed.entities.named(h),
            relation=self.observed.relations.named(r),
            tail=self.observed.entities.named(t),
            asked="tail" if case.relation == r else "head",
            known=case.known,
            hidden=len(case.hidden.triples),
            logit=case.logit,
            probability=case.probability,
            probability_from=self.observed.calibration_of(case.heard).method,
            reached=case.importance.reached,
            attribution=how.attribution,
            weighting=how.weighting,
            layers=case.layers,
            paths=tuple(map(show, chosen.paths, chosen.effects)),
            against=tuple(map(show, chosen.against, chosen.against_effects)),
            tried=chosen.tried,
            carried=_carried(case, chosen.paths),
            subsets=_subsets(case, chosen.paths, how),
            bound=chosen.bound,
            counterfactual=None if matching is None else find_evidence(case, matching),
            deletion=_deletion(case, chosen.paths, how, show),
            memory=find_memory_evidence(case),
            runs=() if self.observed.companions is None else self.observed.companions.answering,
        )

    @cached_property
    def _matching(self) -> Matching:
        return Matching(self._find_space(), self._candidates, self._remove)


def find_paths(case: Case, how: How = HOW) -> ChosenPaths:
    """The paths to show: by re-scoring, or the heaviest by the importance of their edges."""
    if how.attribution == "removal":
        tried = try_candidates(case, how.candidates)
        return _chosen(case, tried, choose_paths(case, tried, how.top), tried.against(MOST_AGAINST), None)
    found = case.best_paths(how.top, how.weighting)
    tried = try_paths(case, found.paths)
    return _chosen(case, tried, tuple(range(len(found.paths))), (), found.bound)


def _chosen(
    case: Case, tried: Tried, shown: tuple[int, ...], against: tuple[int, ...], bound: float | None
) -> ChosenPaths:
    return ChosenPaths(
        paths=tuple(tried.paths[i] for i in shown),
        effects=path_effects(case, tried, shown),
        against=tuple(tried.paths[i] for i in against),
        against_effects=path_effects(case, tried, against),
        tried=len(tried.paths),
        bound=bound,
    )


def _carried(case: Case, paths: tuple[Path, ...]) -> Carried | None:
    if not paths:
        return None
    scored = score_sets(case, [frozenset(triple for path in paths for triple in path.triples)])
    return Carried(scored.alone[0], scored.without[0], case.nothing)


def _subsets(case: Case, paths: tuple[Path, ...], how: How) -> tuple[Outcome, ...]:
    return remove_subsets(case, paths) if how.check and 0 < len(paths) <= MOST_TOGGLED else ()


def _deletion(
    case: Case, paths: tuple[Path, ...], how: How, show: Callable[[Path], NamedPath]
) -> tuple[Deletion[NamedPath], ...]:
    if not how.check or not paths:
        return ()
    return check_deletion(case, paths[0], np.random.default_rng(how.seed), show)
