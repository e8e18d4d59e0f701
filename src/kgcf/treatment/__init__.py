"""Stage 2: the treatment of a triple, from labels of entities per relation, with and without the triple itself."""

from kgcf.treatment.assign import TREATMENTS, assign_to_part, assign_treatment, open_treatment
from kgcf.treatment.labels import LabelChanges, LabelTable
from kgcf.treatment.settings import TreatmentSettings
from kgcf.treatment.treatment import Treatment

__all__ = [
    "TREATMENTS",
    "LabelChanges",
    "LabelTable",
    "Treatment",
    "TreatmentSettings",
    "assign_to_part",
    "assign_treatment",
    "open_treatment",
]
