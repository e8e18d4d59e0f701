"""Counterfactual relations: nearest opposite pairs, their outcomes, and what they say about the treatment."""

from kgcf.causal.counterfactual.candidates import Candidates
from kgcf.causal.counterfactual.descriptions import describe
from kgcf.causal.counterfactual.diagnostics import Diagnostics, diagnose
from kgcf.causal.counterfactual.effects import Effect, Effects, EffectWithPlacebos, estimate_effects
from kgcf.causal.counterfactual.matching import Pool, match_pairs
from kgcf.causal.counterfactual.shares import TreatmentShares, treatment_shares
from kgcf.causal.counterfactual.table import CounterfactualTable

__all__ = [
    "Candidates",
    "CounterfactualTable",
    "Diagnostics",
    "Effect",
    "EffectWithPlacebos",
    "Effects",
    "Pool",
    "TreatmentShares",
    "describe",
    "diagnose",
    "estimate_effects",
    "match_pairs",
    "treatment_shares",
]
