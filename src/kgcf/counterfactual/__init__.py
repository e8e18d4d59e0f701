"""Counterfactual relations: nearest opposite pairs, their outcomes, and what they say about the treatment."""

from kgcf.counterfactual.candidates import Candidates
from kgcf.counterfactual.diagnostics import Diagnostics, diagnose
from kgcf.counterfactual.effects import Effect, Effects, EffectWithPlacebos, estimate_effects
from kgcf.counterfactual.matching import Pool, match_pairs
from kgcf.counterfactual.sentences import describe
from kgcf.counterfactual.shares import TreatmentShares, treatment_shares
from kgcf.counterfactual.stage import CausalStage
from kgcf.counterfactual.table import CounterfactualTable

__all__ = [
    "Candidates",
    "CausalStage",
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
