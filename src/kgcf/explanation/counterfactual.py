"""Counterfactual evidence: would the model still predict the link if its ends stood in another neighbourhood?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.counterfactual import Candidates, CounterfactualTable, match_pairs
from kgcf.embedding import EntitySpace
from kgcf.evaluation.curves import sigmoid
from kgcf.explanation.case import Case
from kgcf.explanation.paths import Path
from kgcf.treatment import Treatment, assign_treatment

Probability = Callable[[float], float]  # of a logit


@dataclass(frozen=True)
class Substitute:
    """The nearest pair with the other treatment under the same relation."""

    head: int
    tail: int
    distance: float  # ‖m_h − m_a‖ + ‖m_t − m_b‖ in the entity space
    known: bool  # A^CF: whether the observed graph has (a, r, b)


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


@dataclass(frozen=True)
class Matching:
    """Where substitutes are looked for."""

    space: EntitySpace
    candidates: Candidates


def find_evidence(case: Case, matching: Matching, probability: Probability = sigmoid) -> CounterfactualEvidence:
    """Match the triple of a case and decode it under both treatments; the model must have a treatment.

    A triple that the graph has is left out of its own treatment here, whatever the run's settings say: it is
    explained as if it were not known.
    """
    assert case.treated is not None, "a model without treatment has no counterfactual"
    assert case.observed.treatment is not None
    table = _match_case(case, matching, case.observed.treatment)
    assert bool(table.factual_treatments[0]) == case.treated
    counterfactual = bool(table.counterfactual_treatments[0])
    substitute = None
    if table.matched[0]:
        a, b = table.substitutes[0].tolist()
        known = bool(table.counterfactual_outcomes[0])
        substitute = Substitute(a, b, float(table.distances[0]), known)
    untreated, treated = (probability(logit) for logit in case.logits_under((False, True)))
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
    table = _match(np.array(edges), case, matching, case.observed.treatment, None)
    pairs = zip(table.factual_treatments.tolist(), table.counterfactual_treatments.tolist(), strict=True)
    return {edge: EdgeTreatments(*pair) for edge, pair in zip(edges, pairs, strict=True)}


def _match_case(case: Case, matching: Matching, treatment: Treatment) -> CounterfactualTable:
    asked = np.array([case.triple])
    if len(case.hidden.triples) < 2:
        return _match(asked, case, matching, treatment, True)
    observed = case.observed  # the pair has other links, hidden with the triple: match on the graph without them
    reduced = observed.graph.without(observed.graph.triples[case.hidden.triples])
    assigned = assign_treatment(reduced, treatment.settings, entities=observed.entities, relations=observed.relations)
    return match_pairs(asked, reduced, matching.space, assigned, matching.candidates, True)


def _match(
    triples: NDArray[np.int64], case: Case, matching: Matching, treatment: Treatment, leave_one_out: bool | None
) -> CounterfactualTable:
    return match_pairs(triples, case.observed.graph, matching.space, treatment, matching.candidates, leave_one_out)
