"""`Explainer`: paths, counterfactual evidence and the deletion check for any triple, names in and names out."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from kgcf.causal.counterfactual import Candidates
from kgcf.causal.embedding import EntitySpace
from kgcf.data.hiding import Remove
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.counterfactual import EdgeTable, Matching, find_edge_treatments, find_evidence
from kgcf.explanation.deletion import Deletion, check_deletion
from kgcf.explanation.explanation import Asked, Explanation
from kgcf.explanation.importance import Attribution
from kgcf.explanation.memory_evidence import find_memory_evidence
from kgcf.explanation.named_paths import NamedPath, name_path
from kgcf.explanation.paths import Layers, Path, Weighting
from kgcf.prediction.observed_graph import ObservedGraph


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

    def explain(
        self,
        head: str,
        relation: str,
        tail: str,
        top: int = 5,
        *,
        asked: Asked = "tail",
        weighting: Weighting = "mean",
        layers: Layers = "own",
        attribution: Attribution = "gradient",
        seed: int = 0,
    ) -> Explanation:
        """Explain a triple as an answer to (head, relation, ?), or to (?, relation, tail) if the head is asked for."""
        entities, relations = self.observed.entities, self.observed.relations
        h, t = entities.id(head, "entity"), entities.id(tail, "entity")
        r = relations.id(relation, "relation")
        question = (h, r, t) if asked == "tail" else (t, r + len(relations), h)
        case = self.case(*question, layers, attribution)
        return self.explain_case(case, top, weighting=weighting, seed=seed)

    def case(
        self, head: int, relation: int, tail: int, layers: Layers = "own", attribution: Attribution = "gradient"
    ) -> Case:
        """Open a case by ids; a relation ≥ R asks for the head of r − R."""
        return open_case(self.observed, head, relation, tail, self._remove, layers, attribution)

    def explain_case(
        self, case: Case, top: int = 5, *, weighting: Weighting = "mean", seed: int = 0, check: bool = True
    ) -> Explanation:
        """All there is to say about a case; without `check` the paths are not put to the deletion check."""
        found = case.best_paths(top, weighting)
        matching = self._matching if case.treated is not None else None
        edges: EdgeTable = {} if matching is None else find_edge_treatments(case, matching, found.paths)

        def show(path: Path) -> NamedPath:
            return name_path(self.observed, path, edges)

        deletions: tuple[Deletion[NamedPath], ...] = ()
        if found.paths and check:
            deletions = check_deletion(case, found.paths[0], np.random.default_rng(seed), show)
        h, r, t = case.triple
        memory, reached = find_memory_evidence(case), np.array([case.importance.reached])
        return Explanation(
            head=self.observed.entities.named(h),
            relation=self.observed.relations.named(r),
            tail=self.observed.entities.named(t),
            asked="tail" if case.relation == r else "head",
            known=case.known,
            hidden=len(case.hidden.triples),
            logit=float(case.answer_logits(np.array([case.importance.logit]), reached)[0]),
            probability=float(case.probabilities(np.array([case.importance.logit]), reached)[0]),
            probability_from=self.observed.calibration.method,
            reached=case.importance.reached,
            weighting=weighting,
            layers=case.layers,
            attribution=case.attribution,
            paths=tuple(show(path) for path in found.paths),
            bound=found.bound,
            counterfactual=None if matching is None else find_evidence(case, matching),
            deletion=deletions,
            memory=memory,
            runs=() if self.observed.companions is None else self.observed.companions.names,
        )

    @cached_property
    def _matching(self) -> Matching:
        return Matching(self._find_space(), self._candidates, self._remove)
