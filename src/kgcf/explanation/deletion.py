"""Does the explanation matter? Remove the path's edges and score again, beside two controls."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np

from kgcf.explanation.case import Case
from kgcf.explanation.paths import Path

P = TypeVar("P")
Removed = Literal["top", "random", "shortest"]


@dataclass(frozen=True)
class Deletion(Generic[P]):
    """What is left of a prediction without the edges of one path."""

    removed: Removed
    path: P  # as whoever asks shows it
    logit: float
    probability: float
    drop: float  # by how much the logit fell
    reached: bool  # whether another path still leads from head to tail


def check_deletion(
    case: Case, top: Path, generator: np.random.Generator, show: Callable[[Path], P]
) -> tuple[Deletion[P], ...]:
    """Score without the top path, without a random simple path of its length, and without the shortest path.

    The random path is drawn from all simple paths of that length, the top one among them; it is missing where
    walks are many and paths so few that none was met. `show` turns a path into what the results hold.
    """
    drawn = case.random_paths.draw(len(top), generator)
    paths: list[tuple[Removed, Path]] = [("top", top)]
    paths += [("random", drawn)] if drawn is not None else []
    paths.append(("shortest", case.shortest_paths(1)[0]))
    found = case.without([np.array(path.triples) for _, path in paths])
    return tuple(
        Deletion(
            removed=kind,
            path=show(path),
            logit=left.logit,
            probability=left.probability,
            drop=case.fall_to(left),
            reached=left.reached,
        )
        for (kind, path), left in zip(paths, found, strict=True)
    )
