"""`Explainer`: paths, counterfactual evidence and the deletion check for any triple, names in and names out."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from kgcf.causal.counterfactual import Candidates
from kgcf.causal.embedding import EntitySpace
from kgcf.data.hiding import Remove
from kgcf.data.vocabulary import Vocabulary
from kgcf.explanation.case import Case, open_case
from kgcf.explanation.counterfactual import (
    CounterfactualEvidence,
    EdgeTreatments,
    Matching,
    Substitute,
    find_edge_treatments,
    find_evidence,
)
from kgcf.explanation.deletion import Deletion, check_deletion
from kgcf.explanation.explanation import (
    Asked,
    Explanation,
    Named,
    NamedDeletion,
    NamedEdge,
    NamedEvidence,
    NamedPath,
    NamedSubstitute,
)
from kgcf.explanation.importance import Attribution
from kgcf.explanation.paths import Layers, Path, PathEdge, Weighting
from kgcf.prediction.observed_graph import ObservedGraph

EdgeTable = dict[tuple[int, int, int], EdgeTreatments]


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
        evidence = None if matching is None else find_evidence(case, matching)
        deletions: tuple[Deletion, ...] = ()
        if found.paths and check:
            deletions = check_deletion(case, found.paths[0], np.random.default_rng(seed))
        h, r, t = case.triple
        return Explanation(
            head=self._entity(h),
            relation=self._relation(r),
            tail=self._entity(t),
            asked="tail" if case.relation == r else "head",
            known=case.known,
            hidden=len(case.hidden.triples),
            logit=case.importance.logit,
            probability=self.observed.probability(case.importance.logit, case.importance.reached),
            probability_from=self.observed.calibration.method,
            reached=case.importance.reached,
            weighting=weighting,
            layers=case.layers,
            attribution=case.attribution,
            paths=tuple(self._path(path, edges) for path in found.paths),
            bound=found.bound,
            counterfactual=None if evidence is None else self._evidence(evidence),
            deletion=tuple(self._deletion(deletion, case, edges) for deletion in deletions),
        )

    @cached_property
    def _matching(self) -> Matching:
        return Matching(self._find_space(), self._candidates, self._remove)

    def _entity(self, index: int) -> Named:
        return _named(self.observed.entities, index)

    def _relation(self, index: int) -> Named:
        return _named(self.observed.relations, index)

    def _path(self, path: Path, treatments: EdgeTable) -> NamedPath:
        return NamedPath(path.weight, tuple(self._edge(edge, treatments) for edge in path.edges))

    def _edge(self, edge: PathEdge, treatments: EdgeTable) -> NamedEdge:
        count = self.observed.graph.relation_count
        own = treatments.get((edge.head, edge.relation, edge.tail))
        return NamedEdge(
            head=self._entity(edge.head),
            relation=self._relation(edge.relation % count),
            inverse=edge.relation >= count,
            tail=self._entity(edge.tail),
            importance=edge.importance,
            factual_treatment=None if own is None else own.factual,
            counterfactual_treatment=None if own is None else own.counterfactual,
        )

    def _evidence(self, found: CounterfactualEvidence) -> NamedEvidence:
        assert self.observed.treatment is not None
        pair = found.substitute
        return NamedEvidence(
            treatment=self.observed.treatment.settings.method,
            factual_treatment=found.factual_treatment,
            counterfactual_treatment=found.counterfactual_treatment,
            factual_probability=found.factual_probability,
            counterfactual_probability=found.counterfactual_probability,
            treated_probability=found.treated_probability,
            untreated_probability=found.untreated_probability,
            individual_effect=found.individual_effect,
            substitute=None if pair is None else self._substitute(pair),
        )

    def _substitute(self, pair: Substitute) -> NamedSubstitute:
        return NamedSubstitute(
            head=self._entity(pair.head),
            tail=self._entity(pair.tail),
            distance=pair.distance,
            known=pair.known,
            factual_treatment=pair.factual_treatment,
            counterfactual_treatment=pair.counterfactual_treatment,
        )

    def _deletion(self, deletion: Deletion, case: Case, treatments: EdgeTable) -> NamedDeletion:
        return NamedDeletion(
            removed=deletion.removed,
            path=self._path(deletion.path, treatments),
            logit=deletion.logit,
            probability=deletion.probability,
            drop=deletion.drop(case.importance.logit),
            reached=deletion.reached,
        )


def _named(vocabulary: Vocabulary, index: int) -> Named:
    return Named(vocabulary.label(index), vocabulary.display(index), vocabulary.ambiguous(index))
