"""How much memory counts: one weight for all questions, one for each relation shrunk towards it, chosen on validation.

A relation's weight is the best for its own validation answers plus the mean of all answers counted κ times; κ, and
whether memory is used at all, is decided by cross-validation over questions.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.memory.settings import Enabled
from kgcf.prediction.blending.blend import Blend
from kgcf.prediction.blending.reciprocal_ranks import LOSSES, WEIGHTS, ReciprocalRanks

FOLDS = 5
NEGLIGIBLE = 0.0005  # of MRR, given away for unreached answers that stand where they belong
SHRINKAGES = (float("inf"), 1600.0, 400.0, 100.0, 25.0)  # κ; the first wins a tie


@dataclass(frozen=True, eq=False)
class _Choice:
    """Places in the lists of weights and losses."""

    loss: int
    common: int
    by_relation: NDArray[np.int64] = field(repr=False)  # [2R]


def fit_blend(
    ranks: ReciprocalRanks, relation_count: int, enabled: Enabled = "auto", seed: int = 0, **training: object
) -> Blend:
    """The blend of R = `relation_count` relations; not used where cross-validation finds no gain, unless `on`.

    A gain counts if it is larger than its own standard error.
    """
    kinds = 2 * relation_count
    folds = _folds(ranks.questions, seed)
    held_out = {kappa: _cross_validate(ranks, folds, kinds, kappa) for kappa in SHRINKAGES}
    best = max(SHRINKAGES, key=lambda kappa: held_out[kappa].mean())
    gains = held_out[best] - ranks.paths
    gain, error = float(gains.mean()), float(gains.std() / np.sqrt(max(len(gains), 1)))
    found = gain > error
    chosen = _choose(ranks, np.ones(len(ranks), dtype=bool), kinds, best)
    return Blend(
        used=found or enabled == "on",
        reason=_reason(ranks, held_out[best], gain, error, found, enabled),
        weights=tuple(WEIGHTS[place] for place in chosen.by_relation),
        common=WEIGHTS[chosen.common],
        shrinkage=None if np.isinf(best) else best,
        unreached=LOSSES[chosen.loss],
        figures={
            "questions": len(np.unique(ranks.questions)),
            "answers": len(ranks),
            "paths": float(ranks.paths.mean()),
            "memory": float(ranks.memory.mean()),
            "both": float(held_out[best].mean()),  # by weights that were fitted on other questions
            "gain": gain,
            "standard_error": error,
        },
        training=training,
    )


def _reason(
    ranks: ReciprocalRanks, held_out: NDArray[np.float64], gain: float, error: float, found: bool, enabled: Enabled
) -> str:
    """What cross-validation found, as a sentence."""
    compared = (
        f"validation MRR {ranks.paths.mean():.4f} by paths alone, {ranks.memory.mean():.4f} by memory alone, "
        f"{held_out.mean():.4f} by both ({gain:+.4f} ± {error:.4f}, {FOLDS}-fold cross-validation over questions)"
    )
    if found:
        return f"Memory is used: {compared}."
    if enabled == "on":
        return f"Memory is used because memory.enabled is on, though there is no certain gain: {compared}."
    return f"Memory is not used, for there is no certain gain: {compared}."


def _folds(questions: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """[A] the fold of every answer; answers of one question stay together."""
    distinct, place = np.unique(questions, return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(distinct)) % FOLDS)[place]


def _cross_validate(ranks: ReciprocalRanks, folds: NDArray[np.int64], kinds: int, kappa: float) -> NDArray[np.float64]:
    """[A] the reciprocal rank of every answer under weights that were fitted on the other folds."""
    result = np.empty(len(ranks))
    for fold in np.unique(folds):
        inside = folds == fold
        chosen = _choose(ranks, ~inside, kinds, kappa)
        places = chosen.by_relation[ranks.relations[inside]]
        result[inside] = ranks.both[inside, chosen.loss, places]
    return result


def _choose(ranks: ReciprocalRanks, rows: NDArray[np.bool_], kinds: int, kappa: float) -> _Choice:
    """The best loss and common weight of some answers, and the weight of every relation."""
    if not rows.any():
        return _Choice(0, 0, np.zeros(kinds, dtype=np.int64))
    tried = ranks.both[rows]
    means = tried.mean(axis=0)  # [losses, weights]
    loss = _choose_loss(tried, means)
    common = int(means[loss].argmax())
    if np.isinf(kappa):
        return _Choice(loss, common, np.full(kinds, common, dtype=np.int64))
    sums = np.tile(kappa * means[loss], (kinds, 1))
    np.add.at(sums, ranks.relations[rows], tried[:, loss])
    return _Choice(loss, common, sums.argmax(axis=1))


def _choose_loss(tried: NDArray[np.float64], means: NDArray[np.float64]) -> int:
    """What the unreached lose: the loss of least mean rank among those that cost next to nothing in MRR.

    MRR hardly notices whether an unreached answer is the 500th or the 5,000th, so it cannot choose alone.
    """
    by_loss = means.max(axis=1)
    mean_ranks = (1 / tried[:, np.arange(len(means)), means.argmax(axis=1)]).mean(axis=0)  # [losses]
    return int(np.where(by_loss >= by_loss.max() - NEGLIGIBLE, mean_ranks, np.inf).argmin())
