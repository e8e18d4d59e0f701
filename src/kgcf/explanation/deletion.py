"""Does the explanation matter? Remove the path's edges and score again, beside two controls."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kgcf.explanation.case import Case
from kgcf.explanation.counterfactual import Probability
from kgcf.explanation.paths import Path
from kgcf.prediction.answers import sigmoid
from kgcf.progress import Advance, silent

Removed = Literal["top", "random", "shortest"]
KINDS: tuple[Removed, ...] = ("top", "random", "shortest")
_RESAMPLES = 2000


@dataclass(frozen=True)
class Deletion:
    """What is left of a prediction without the edges of one path."""

    removed: Removed
    path: Path
    logit: float
    probability: float
    reached: bool  # whether another path still leads from head to tail

    def drop(self, before: float) -> float:
        """By how much the logit fell."""
        return before - self.logit


def check_deletion(
    case: Case, top: Path, generator: np.random.Generator, probability: Probability = sigmoid
) -> tuple[Deletion, ...]:
    """Score without the top path, without a random simple path of its length, and without the shortest path.

    The random path is drawn from all simple paths of that length, the top one among them; it is missing where
    walks are many and paths so few that none was met.
    """
    drawn = case.random_paths.draw(len(top), generator)
    paths: list[tuple[Removed, Path]] = [("top", top)]
    paths += [("random", drawn)] if drawn is not None else []
    paths.append(("shortest", case.shortest_paths(1)[0]))
    logits, reached = case.logits_without([np.array(path.triples) for _, path in paths])
    return tuple(
        Deletion(kind, path, float(logits[i]), probability(float(logits[i])), bool(reached[i]))
        for i, (kind, path) in enumerate(paths)
    )


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the sign of the mean is settled."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False)
class DeletionCurve:
    """Drops of the logit when the edges of the first 1, 2, … paths are removed, for Q triples with all three kinds."""

    counts: tuple[int, ...]  # [C] paths removed
    drops: dict[Removed, NDArray[np.float64]] = field(repr=False)  # each [Q, C]
    cut: dict[Removed, NDArray[np.bool_]] = field(repr=False)  # each [Q, C]: no path is left
    same: int  # triples whose first random path is the top path itself
    without_path: int  # triples asked about that no path reaches
    without_random: int  # triples left out because no random path was met

    def __len__(self) -> int:
        return len(self.drops["top"])

    def mean_drops(self, kind: Removed) -> list[float]:
        """[C] the mean drop after every number of paths."""
        return [float(mean) for mean in self.drops[kind].mean(axis=0)]

    def difference(self, index: int, generator: np.random.Generator, other: Removed = "random") -> Interval:
        """The mean of (top − other) after counts[index] paths, paired by triple."""
        return bootstrap(self.drops["top"][:, index] - self.drops[other][:, index], generator)


def bootstrap(values: NDArray[np.float64], generator: np.random.Generator) -> Interval:
    """The mean of values and its 95 % percentile interval over resamples."""
    rows = generator.integers(0, len(values), (_RESAMPLES, len(values)))
    low, high = np.quantile(values[rows].mean(axis=1), [0.025, 0.975])
    return Interval(float(values.mean()), float(low), float(high))


def trace_deletions(
    cases: Iterable[Case],
    generator: np.random.Generator,
    counts: Sequence[int] = (1, 2, 3, 5, 10),
    advance: Advance = silent,
) -> DeletionCurve:
    """Remove the best paths of every case one after another, beside random paths of the same lengths and the shortest.

    Where a case has fewer paths than a count asks for, all it has are removed.
    """
    drops: dict[Removed, list[NDArray[np.float64]]] = {kind: [] for kind in KINDS}
    cut: dict[Removed, list[NDArray[np.bool_]]] = {kind: [] for kind in KINDS}
    same = without_path = without_random = 0
    for case in cases:
        advance(1)
        best = case.best_paths(max(counts)).paths
        drawn = [path for path in case.random_paths.draw_like(best, generator) if path is not None]
        without_path += not best
        without_random += len(drawn) < len(best)
        if not best or len(drawn) < len(best):
            continue
        same += drawn[0].triples == best[0].triples
        chosen = {"top": best, "random": tuple(drawn), "shortest": case.shortest_paths(len(best))}
        for kind in KINDS:
            logits, reached = case.logits_without([_triples_of(chosen[kind][:count]) for count in counts])
            drops[kind].append(case.importance.logit - logits)
            cut[kind].append(~reached)
    shape = (-1, len(counts))
    return DeletionCurve(
        counts=tuple(counts),
        drops={kind: np.array(rows, dtype=np.float64).reshape(shape) for kind, rows in drops.items()},
        cut={kind: np.array(rows, dtype=bool).reshape(shape) for kind, rows in cut.items()},
        same=same,
        without_path=without_path,
        without_random=without_random,
    )


def _triples_of(paths: Sequence[Path]) -> NDArray[np.int64]:
    return np.array([triple for path in paths for triple in path.triples], dtype=np.int64)
