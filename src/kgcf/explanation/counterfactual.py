"""Counterfactual evidence: would the model still predict the link if its ends stood in another neighbourhood?"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.counterfactual import Candidates, CounterfactualTable, Pool, match_pairs
from kgcf.data.graph import KnowledgeGraph
from kgcf.embedding import EntitySpace
from kgcf.explanation.case import Case
from kgcf.explanation.paths import Path
from kgcf.treatment import Treatment, assign_to_part


@dataclass(frozen=True)
class Substitute:
    """The nearest pair with the other treatment under the same relation."""

    head: int
    tail: int
    distance: float  # ‖m_h − m_a‖ + ‖m_t − m_b‖ in the entity space
    known: bool  # A^CF: whether the observed graph has (a, r, b)
    factual_treatment: bool  # of (a, r, b) itself: the T^CF of the triple it stands for
    counterfactual_treatment: bool  # of (a, r, b) itself, by its own nearest pair


@dataclass(frozen=True)
class CounterfactualEvidence:
    """T and what the model says under it, for one triple (h, r, t)."""

    factual_treatment: bool  # T^F
    counterfactual_treatment: bool  # T^CF; T^F where no pair with the other treatment exists
    substitute: Substitute | None
    factual_probability: float  # p^F
    counterfactual_probability: float  # p^CF: decoded with T^CF
    treated_probability: float
    untreated_probability: float

    @property
    def individual_effect(self) -> float:
        """ITE = p(T = 1) − p(T = 0)."""
        return self.treated_probability - self.untreated_probability


@dataclass(frozen=True)
class EdgeTreatments:
    """T^F and T^CF of one path edge under its own relation."""

    factual: bool
    counterfactual: bool


@dataclass(frozen=True, eq=False)
class Matching:
    """Where substitutes are looked for; pools of pairs are kept from one explanation to the next."""

    space: EntitySpace
    candidates: Candidates
    _pools: dict[bool, Pool] = field(default_factory=dict, repr=False)  # by leave_one_out

    def match(
        self,
        triples: NDArray[np.int64],
        graph: KnowledgeGraph,
        treatment: Treatment,
        leave_one_out: bool | None = None,
    ) -> CounterfactualTable:
        """`match_pairs` on this space."""
        own = treatment.settings.leave_one_out if leave_one_out is None else leave_one_out
        pool = self._pools.get(own)
        if pool is None or not pool.serves(graph, treatment, self.candidates, own):
            pool = self._pools[own] = Pool.of(graph, treatment, self.candidates, own)
        return match_pairs(triples, graph, self.space, treatment, self.candidates, own, pool=pool)


def find_evidence(case: Case, matching: Matching) -> CounterfactualEvidence:
    """Match the triple of a case and decode it under both treatments; the model must have a treatment.

    A triple that the graph has is left out of its own treatment here, whatever the run's settings say: it is
    explained as if it were not known. Probabilities are those that predictions show.
    """
    assert case.treated is not None, "a model without treatment has no counterfactual"
    table = _match_case(np.array([case.triple]), case, matching)
    assert bool(table.factual_treatments[0]) == case.treated
    counterfactual = bool(table.counterfactual_treatments[0])
    substitute = None
    if table.matched[0]:
        a, b = table.substitutes[0].tolist()
        known = bool(table.counterfactual_outcomes[0])
        left_out = matching.candidates == "observed"  # as its treatment was taken when it was found
        own = _match_case(np.array([[a, case.triple[1], b]]), case, matching, left_out)
        assert bool(own.factual_treatments[0]) == counterfactual
        further = bool(own.counterfactual_treatments[0])
        substitute = Substitute(a, b, float(table.distances[0]), known, counterfactual, further)
    logits = case.logits_under((False, True))
    untreated, treated = (case.observed.probability(logit, case.importance.reached) for logit in logits)
    return CounterfactualEvidence(
        factual_treatment=case.treated,
        counterfactual_treatment=counterfactual,
        substitute=substitute,
        factual_probability=treated if case.treated else untreated,
        counterfactual_probability=treated if counterfactual else untreated,
        treated_probability=treated,
        untreated_probability=untreated,
    )


def find_edge_treatments(
    case: Case, matching: Matching, paths: Sequence[Path]
) -> dict[tuple[int, int, int], EdgeTreatments]:
    """T^F and T^CF of every edge on the paths, by (head, relation, tail) as it is travelled."""
    assert case.observed.treatment is not None
    edges = sorted({(edge.head, edge.relation, edge.tail) for path in paths for edge in path.edges})
    if not edges:
        return {}
    table = matching.match(np.array(edges), case.observed.graph, case.observed.treatment)
    pairs = zip(table.factual_treatments.tolist(), table.counterfactual_treatments.tolist(), strict=True)
    return {edge: EdgeTreatments(*pair) for edge, pair in zip(edges, pairs, strict=True)}


def _match_case(
    asked: NDArray[np.int64], case: Case, matching: Matching, leave_one_out: bool = True
) -> CounterfactualTable:
    """Match a triple as the case sees it: without further hidden triples, and left out of its own treatment."""
    observed, treatment = case.observed, case.observed.treatment
    assert treatment is not None
    if len(case.hidden.triples) < 2:
        return matching.match(asked, observed.graph, treatment, leave_one_out)
    # the pair has other links, hidden with the triple: match on the graph without them
    reduced = observed.graph.without(observed.graph.triples[case.hidden.triples])
    assigned = assign_to_part(treatment, reduced)
    return match_pairs(asked, reduced, matching.space, assigned, matching.candidates, leave_one_out)
