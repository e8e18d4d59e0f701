"""What a calibration is about, in words: everything that must be equal for two of them to be comparable."""

from typing import Any

from kgcf.data.dataset import Dataset
from kgcf.machine.provenance import provenance
from kgcf.prediction.calibration.completed_links import MEANING
from kgcf.prediction.calibration.fitting import FOLDS, LEAST_ANSWERS
from kgcf.prediction.calibration.reliability import BINS
from kgcf.prediction.proposals import BEST, OTHERS

TOP = 10  # answers of a question that are looked at


def describe_validation(data: Dataset) -> str:
    """Which graph the validation triples are about."""
    if not len(data.valid):
        return "none: there are no validation triples"
    if data.validated_elsewhere:
        return "on the inference graph, with its train triples observed; the train graph has no validation triples"
    return "on the train graph, with the train triples observed"


def describe(data: Dataset, limit: int | None, seed: int) -> dict[str, Any]:
    """Everything that must be equal for two calibrations to be comparable, and what a probability means."""
    return {
        "dataset": data.name,
        "setting": "inductive" if data.inductive else "transductive",
        "validation": describe_validation(data),
        "fitted": "on validation, which also selects the model; labels, candidates and draws know nothing of test",
        "reported": "on test, with the test split's own observed graph; unshared: the questions of test that share no "
        "(head, relation) with a question of the fit",
        "triples": "all of a split" if limit is None else f"at most {limit} of a split, drawn at random",
        "limit": limit,
        "seed": seed,
        "questions": "both sides; a question that several triples ask is asked once",
        "answers": f"the {TOP} best of each question; answers in train, and on test those in valid, are left out",
        "label": "a triple of the split asked about; every other answer counts as false",
        "unreached": "one probability for all answers that no path reaches; no reached answer gets less",
        "before": "the sigmoid of the logit",
        "ece": f"{BINS} bins of equal mass; equal probabilities are not divided",
        "chosen": f"by Brier score in {FOLDS}-fold cross-validation over validation questions",
        "needs": f"{LEAST_ANSWERS} reached validation answers, true and false ones; else the sigmoid stays",
        "meaning": "how often such an answer is a fact held back, given that the question has one; true answers that "
        "nobody wrote down count as false",
        "completion": {
            "meaning": MEANING,
            "questions": "all of every relation (entities seen as its heads)"
            if limit is None
            else f"at most {limit} of all (entities seen as heads of a relation), half with a fact held back",
            "links": f"reached, new, tail seen; the {BEST} best, the true ones and {OTHERS} others of each question",
            "weights": "each link stands for those that were not looked at",
            "chosen": f"the spread of the relations' intercepts, by log loss in {FOLDS}-fold cross-validation",
        },
        **provenance(),
    }
