"""Stage 2: the treatment of a triple, from labels of entities per relation, with and without the triple itself."""

from kgcf.causal.treatment.assign import (
    TREATMENTS,
    assign_to_part,
    assign_treatment,
    open_treatment,
    treatment_of_labels,
)
from kgcf.causal.treatment.labels import LabelChanges, LabelTable
from kgcf.causal.treatment.settings import TreatmentSettings
from kgcf.causal.treatment.treatment import Treatment

__all__ = [
    "TREATMENTS",
    "LabelChanges",
    "LabelTable",
    "Treatment",
    "TreatmentSettings",
    "assign_to_part",
    "assign_treatment",
    "open_treatment",
    "treatment_of_labels",
]
