"""Validation on some triples and among several processes: the same mean as alone on all that was drawn."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import kgcf
from kgcf.runs.validation import divided_mrr
from kgcf.training.distributed import World
from tests.wiring.conftest import CHANGES, Town

QUICK = (*CHANGES, "training.epochs=1", "decoder.treatment=false", "objective.alpha=0", "objective.beta=0")


def test_validation_draws_as_many_triples_as_it_is_told(town: Town, tmp_path: Path) -> None:
    seen: list[set[tuple[int, ...]]] = []
    for limit, seed in ((3, 0), (3, 1), (3, 2), (8, 0), (99, 0)):
        changes = (*QUICK, f"training.validate_triples={limit}", f"training.seed={seed}")
        run = kgcf.fit(town.raw.folder, tmp_path / f"{limit} {seed}", changes=changes)
        evaluation = run.evaluate("valid")  # which other tests compare with the raw files
        each = (1 / evaluation.ranks.realistic).reshape(2, -1).mean(axis=0)
        found = evaluation.protocol["training"]["best_validation_mrr"]
        subsets = combinations(range(len(each)), min(limit, len(each)))
        drawn = {rows for rows in subsets if each[list(rows)].mean() == pytest.approx(found)}
        assert drawn
        if limit == 3:
            seen.append(drawn)
    assert not set.intersection(*seen)  # another seed, other triples


class OneOfTwo(World):
    """A process that hears what both found."""

    both: dict[int, NDArray[np.int64]]

    def gather(self, values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        self.both[self.rank] = values
        return [self.both[rank] for rank in sorted(self.both)]


@pytest.mark.parametrize("limit", [None, 5])
def test_two_processes_validate_like_one(town: Town, limit: int | None) -> None:
    data = town.run.data
    scorer = town.run.bind(data.graph, data.entities).scorer
    alone = divided_mrr(scorer, data, limit, 1, World())
    shared: dict[int, NDArray[np.int64]] = {}
    values = []
    for rank in (0, 1, 0):
        world = OneOfTwo(rank, 2)
        object.__setattr__(world, "both", shared)
        values.append(divided_mrr(scorer, data, limit, 1, world))
    assert shared[0].shape[1] + shared[1].shape[1] == 2 * (limit or len(town.raw.valid))
    assert values[1:] == pytest.approx([alone, alone], rel=1e-12)
