"""A curve for answers whose relations differ: the same logit is worth more in some questions than in others.

Of ten countries of a region that a model ranks high one is missing from the graph; of ten regions of a country one is
right, and it stands first. Logits do not know this. So a relation, and its inverse, may have an intercept of its own,
as completed links have. Within a question nothing changes places.
"""

import numpy as np

from kgcf.prediction.calibration.link_curves import (
    LinkCurve,
    Proposals,
    add_up,
    fit_link_curve,
    flat_curve,
)
from kgcf.prediction.calibration.ranked_answers import RankedAnswers

SPREADS = (0.5, 2.0)  # how far intercepts may differ, as standard deviations: little or much


def fit_by_relation(answers: RankedAnswers, spread: float) -> LinkCurve:
    """One rising curve and an intercept for every relation and direction; a flat one where no curve can rise."""
    alike = Proposals(
        answers.questions,
        answers.relations,
        answers.logits,
        answers.labels,
        np.ones(len(answers)),  # every one stands for itself
        answers.relation_count,
    )
    cells = add_up(alike, 1, np.random.default_rng(0))
    return flat_curve(alike) if cells is None else fit_link_curve(cells, spread)
