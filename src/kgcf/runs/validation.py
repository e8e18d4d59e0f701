"""Validation during training: the MRR of the validation split, its queries divided among processes."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from kgcf.data.dataset import Dataset
from kgcf.evaluation.ranks import rank_answers
from kgcf.machine import memory_bound as bound
from kgcf.progress import Advance, silent
from kgcf.scoring import Scorer
from kgcf.training.distributed import World

Counted = Callable[[int], AbstractContextManager[Advance]]


def not_counted(_: int) -> AbstractContextManager[Advance]:
    """Nobody hears."""
    return nullcontext(silent)


def divided_mrr(
    scorer: Scorer,
    data: Dataset,
    limit: int | None,
    seed: int,
    world: World,
    memory: float = bound.DEFAULT,
    ranked: Counted = not_counted,
) -> float:
    """Filtered MRR of both sides, realistic ties, on `limit` validation triples drawn with the seed, or on all.

    The filter is train and valid, so that nothing which is chosen by this number has seen test. `ranked` is told how
    many questions there are, and gives what hears how many are done.
    """
    triples = data.valid.queries
    if limit is not None and limit < len(triples):
        drawn = np.random.default_rng(seed).choice(len(triples), size=limit, replace=False)
        triples = triples[np.sort(drawn)]
    own = triples[world.rank :: world.size]
    with ranked(2 * len(own)) as advance:
        ranks = rank_answers(scorer, data.valid, own, memory, advance)
    counted = np.concatenate(world.gather(np.stack([ranks.better, ranks.equal])), axis=1)
    return float((1 / (counted[0] + counted[1] / 2 + 1)).mean())
