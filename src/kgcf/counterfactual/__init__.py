"""Counterfactual relations: nearest opposite pairs, their outcomes, and what they say about the treatment."""

from kgcf.counterfactual.candidates import Candidates
from kgcf.counterfactual.matching import match_pairs
from kgcf.counterfactual.table import CounterfactualTable

__all__ = ["Candidates", "CounterfactualTable", "match_pairs"]
