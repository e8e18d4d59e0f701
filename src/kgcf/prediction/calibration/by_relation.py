"""A curve for answers whose relations differ: the same logit is worth more in some questions than in others.

Of ten countries of a region that a model ranks high one is missing from the graph; of ten regions of a country one is
right, and it stands first. Logits do not know this. So a relation, and its inverse, may have an intercept of its own,
as completed links have. Within a question nothing changes places.
"""

import numpy as np

from kgcf.prediction.calibration.link_curves import (
    SPREADS,
    Cells,
    LinkCurve,
    Proposals,
    add_up,
    cross_validate_spreads,
    fit_link_curve,
)
from kgcf.prediction.calibration.ranked_answers import RankedAnswers


def choose_spread(answers: RankedAnswers, folds: int, seed: int) -> float | None:
    """How far relations may differ, by cross-validation over questions; None: not at all, or no curve can rise."""
    cells = _cells(answers, folds, seed)
    if cells is None:
        return None
    scores = cross_validate_spreads(cells)
    return min(SPREADS, key=lambda spread: scores[spread]) or None


def fit_by_relation(answers: RankedAnswers, spread: float) -> LinkCurve | None:
    """One rising curve and an intercept for every relation and direction; None where no curve can rise."""
    cells = _cells(answers, 1, 0)
    return None if cells is None else fit_link_curve(cells, spread)


def _cells(answers: RankedAnswers, folds: int, seed: int) -> Cells | None:
    """The answers added up; every one stands for itself."""
    alike = Proposals(
        answers.questions,
        answers.relations,
        answers.logits,
        answers.labels,
        np.ones(len(answers)),
        answers.relation_count,
    )
    return add_up(alike, folds, np.random.default_rng(seed))
