"""Counterfactual evidence: would the model still predict the link if its ends stood in another neighbourhood?"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.counterfactual import Candidates, CounterfactualTable, Pool, match_pairs
from kgcf.causal.embedding import EntitySpace
from kgcf.causal.treatment import Treatment, assign_to_part
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, Remove, hide_by_rule, hide_nothing
from kgcf.data.vocabulary import Named
from kgcf.explanation.case import Case
from kgcf.explanation.paths import Path


@dataclass(frozen=True)
class Substitute:
    """The nearest pair with the other treatment under the same relation: is the relation known there?"""

    head: Named
    tail: Named
    distance: float  # ‖m_h − m_a‖ + ‖m_t − m_b‖ in the entity space
    known: bool  # A^CF: whether the observed graph has (a, r, b)
    factual_treatment: bool  # of (a, r, b) itself: the T^CF of the triple it stands for
    counterfactual_treatment: bool  # of (a, r, b) itself, by its own nearest pair


@dataclass(frozen=True)
class CounterfactualEvidence:
    """T and what the model says under it, for one triple (h, r, t); all probabilities are of the triple itself."""

    treatment: str  # how entities are labelled: core_number, …
    factual_treatment: bool  # T^F
    counterfactual_treatment: bool  # T^CF; T^F where no pair with the other treatment exists
    factual_probability: float  # p^F
    counterfactual_probability: float  # p^CF: decoded with T^CF
    treated_probability: float  # under T = 1
    untreated_probability: float  # under T = 0
    individual_effect: float  # ITE = p(T = 1) − p(T = 0)
    substitute: Substitute | None

    @property
    def other_probability(self) -> float:
        """That of the triple itself under the treatment that it does not have."""
        return self.untreated_probability if self.factual_treatment else self.treated_probability


@dataclass(frozen=True)
class EdgeTreatments:
    """T^F and T^CF of one path edge under its own relation."""

    factual: bool
    counterfactual: bool


EdgeTable = dict[tuple[int, int, int], EdgeTreatments]  # by (head, relation, tail) as an edge is travelled


@dataclass(frozen=True, eq=False)
class Matching:
    """Where substitutes are looked for; pools of pairs are kept from one explanation to the next."""

    space: EntitySpace
    candidates: Candidates
    remove: Remove = "triple"  # as the run was trained: substitutes keep the treatments that training gave them
    _pools: dict[bool, Pool] = field(default_factory=dict, repr=False)  # by leave_one_out

    def match(
        self,
        triples: NDArray[np.int64],
        graph: KnowledgeGraph,
        treatment: Treatment,
        leave_one_out: bool | None = None,
        hidden: HiddenTriples | None = None,
    ) -> CounterfactualTable:
        """`match_pairs` on this space."""
        own = treatment.settings.leave_one_out if leave_one_out is None else leave_one_out
        pool = self._pools.get(own)
        if pool is None or not pool.serves(graph, treatment, self.candidates, own, self.remove):
            pool = self._pools[own] = Pool.of(graph, treatment, self.candidates, own, self.remove)
        return match_pairs(
            triples, graph, self.space, treatment, self.candidates, own, pool=pool, remove=self.remove, hidden=hidden
        )


def find_evidence(case: Case, matching: Matching) -> CounterfactualEvidence:
    """Match the triple of a case and decode it under both treatments; the model must have a treatment.

    A triple that the graph has is left out of its own treatment here, whatever the run's settings say: it is
    explained as if it were not known. Probabilities are those that predictions show.
    """
    assert case.treated is not None, "a model without treatment has no counterfactual"
    matching, graph, treatment = _as_seen(case, matching)
    table = matching.match(np.array([case.triple]), graph, treatment, leave_one_out=True)
    assert bool(table.factual_treatments[0]) == case.treated
    counterfactual = bool(table.counterfactual_treatments[0])
    logits = np.array(case.logits_under((False, True)))
    untreated, treated = case.probabilities(logits, np.full(2, case.importance.reached)).tolist()
    return CounterfactualEvidence(
        treatment=treatment.settings.method,
        factual_treatment=case.treated,
        counterfactual_treatment=counterfactual,
        factual_probability=treated if case.treated else untreated,
        counterfactual_probability=treated if counterfactual else untreated,
        treated_probability=treated,
        untreated_probability=untreated,
        individual_effect=treated - untreated,
        substitute=_substitute(case, matching, graph, treatment, table) if table.matched[0] else None,
    )


def _substitute(
    case: Case, matching: Matching, graph: KnowledgeGraph, treatment: Treatment, table: CounterfactualTable
) -> Substitute:
    """The pair that was found for the triple of a case, with its own treatments."""
    a, b = table.substitutes[0].tolist()
    r = case.triple[1]
    rule = hide_nothing(1)  # its treatment is taken as it was when it was found
    if matching.candidates == "observed":
        rule = hide_by_rule(graph, [a], [r], [[b]], matching.remove)
    own = matching.match(np.array([[a, r, b]]), graph, treatment, leave_one_out=True, hidden=rule)
    assert own.factual_treatments[0] == table.counterfactual_treatments[0]
    return Substitute(
        head=case.observed.entities.named(a),
        tail=case.observed.entities.named(b),
        distance=float(table.distances[0]),
        known=bool(table.counterfactual_outcomes[0]),
        factual_treatment=bool(own.factual_treatments[0]),
        counterfactual_treatment=bool(own.counterfactual_treatments[0]),
    )


def find_edge_treatments(case: Case, matching: Matching, paths: Sequence[Path]) -> EdgeTable:
    """T^F and T^CF of every edge on the paths, by (head, relation, tail) as it is travelled."""
    assert case.observed.treatment is not None
    edges = sorted({(edge.head, edge.relation, edge.tail) for path in paths for edge in path.edges})
    if not edges:
        return {}
    table = matching.match(np.array(edges), case.observed.graph, case.observed.treatment)
    pairs = zip(table.factual_treatments.tolist(), table.counterfactual_treatments.tolist(), strict=True)
    return {edge: EdgeTreatments(*pair) for edge, pair in zip(edges, pairs, strict=True)}


def _as_seen(case: Case, matching: Matching) -> tuple[Matching, KnowledgeGraph, Treatment]:
    """Where the triple of a case is matched: on the observed graph, or on the one without further hidden triples."""
    observed, treatment = case.observed, case.observed.treatment
    assert treatment is not None
    if len(case.hidden.triples) < 2:
        return matching, observed.graph, treatment
    # the pair has other links, hidden with the triple: match on the graph without them
    reduced = observed.graph.without(observed.graph.triples[case.hidden.triples])
    return replace(matching, _pools={}), reduced, assign_to_part(treatment, reduced)
