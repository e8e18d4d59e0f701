"""Does the explanation matter? Remove the path's edges and score again, beside two controls."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from kgcf.evaluation.bootstrap import Interval, bootstrap
from kgcf.explanation.case import Case
from kgcf.explanation.paths import Path, Weighting
from kgcf.progress import Advance, silent

P = TypeVar("P")
Removed = Literal["top", "random", "shortest"]
KINDS: tuple[Removed, ...] = ("top", "random", "shortest")
_RESAMPLES = 2000
_MOST_ROUNDS = 10  # random paths drawn per best path


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
    logits, reached = case.logits_without([np.array(path.triples) for _, path in paths])
    probabilities = case.probabilities(logits, reached)
    return tuple(
        Deletion(
            removed=kind,
            path=show(path),
            logit=float(logits[i]),
            probability=float(probabilities[i]),
            drop=case.importance.logit - float(logits[i]),
            reached=bool(reached[i]),
        )
        for i, (kind, path) in enumerate(paths)
    )


@dataclass(frozen=True, eq=False)
class DeletionCurve:
    """Drops of the logit when the edges of the first 1, 2, … paths are removed, for Q triples with all three kinds."""

    counts: tuple[int, ...]  # [C] paths removed
    removed: NDArray[np.int64] = field(repr=False)  # [Q, C] distinct triples on the best paths
    drops: dict[Removed, NDArray[np.float64]] = field(repr=False)  # each [Q, C]
    cut: dict[Removed, NDArray[np.bool_]] = field(repr=False)  # each [Q, C]: no path is left
    same: int  # triples whose first random path is the top path itself
    without_path: int  # triples asked about that no path reaches
    without_random: int  # triples left out because no random path was met

    def __len__(self) -> int:
        return len(self.drops["top"])

    def difference(
        self, index: int, generator: np.random.Generator, other: Removed = "random", connected: bool = False
    ) -> Interval | None:
        """The mean of (top − other) after counts[index] paths, paired by triple; None where there is no pair.

        With `connected` only triples count that keep a path after both removals: cutting the last path moves the logit
        by so much that it drowns everything else.
        """
        values = self.drops["top"][:, index] - self.drops[other][:, index]
        if connected:
            values = values[~(self.cut["top"] | self.cut[other])[:, index]]
        return bootstrap(values, generator, _RESAMPLES) if len(values) else None


def trace_deletions(
    cases: Iterable[Case],
    generator: np.random.Generator,
    counts: Sequence[int] = (1, 2, 3, 5, 10),
    weighting: Weighting = "mean",
    advance: Advance = silent,
) -> DeletionCurve:
    """Remove the best paths of every case one after another, beside random paths and the shortest ones.

    Best paths share edges, random ones hardly: so random paths of the same lengths are removed edge by edge until as
    many triples are gone (one path against one of the same length). Where a case has fewer paths
    than a count asks for, all it has are removed.
    """
    rows: list[dict[Removed, _Row]] = []
    same = without_path = without_random = 0
    for case in cases:
        advance(1)
        best = case.best_paths(max(counts), weighting).paths
        drawn = list(_draw_paths(case, best, generator))
        without_path += not best
        without_random += bool(best) and not drawn
        if best and drawn:
            same += drawn[0].triples == best[0].triples
            rows.append(_row(case, best, drawn, counts))
    return DeletionCurve(
        counts=tuple(counts),
        removed=np.array([row["top"].removed for row in rows], dtype=np.int64).reshape(-1, len(counts)),
        drops={kind: _stack([row[kind].drops for row in rows], len(counts)) for kind in KINDS},
        cut={kind: _stack([row[kind].cut for row in rows], len(counts)).astype(bool) for kind in KINDS},
        same=same,
        without_path=without_path,
        without_random=without_random,
    )


@dataclass(frozen=True, eq=False)
class _Row:
    removed: list[int]  # [C] how many triples
    drops: NDArray[np.float64]  # [C]
    cut: NDArray[np.bool_]  # [C]


def _row(case: Case, best: tuple[Path, ...], drawn: list[Path], counts: Sequence[int]) -> dict[Removed, _Row]:
    top = [_distinct(best[:count]) for count in counts]
    spread = _distinct(drawn)
    shortest = case.shortest_paths(len(best))
    removals: dict[Removed, list[NDArray[np.int64]]] = {
        "top": top,
        "random": [spread[: len(triples)] for triples in top],
        "shortest": [_distinct(shortest[:count]) for count in counts],
    }
    found = {}
    for kind, sets in removals.items():
        logits, reached = case.logits_without(sets)
        found[kind] = _Row([len(triples) for triples in sets], case.importance.logit - logits, ~reached)
    return found


def _draw_paths(case: Case, best: tuple[Path, ...], generator: np.random.Generator) -> Iterator[Path]:
    """Random paths of the lengths of the best ones, in their order, again and again until they have as many triples."""
    wanted = len(_distinct(best))
    removed_triples: set[int] = set()
    for path in itertools.islice(itertools.cycle(best), _MOST_ROUNDS * len(best)):
        drawn = case.random_paths.draw(len(path), generator)
        if drawn is None or len(removed_triples) >= wanted:
            return
        removed_triples.update(drawn.triples)
        yield drawn


def _distinct(paths: Sequence[Path]) -> NDArray[np.int64]:
    """The triples of paths in the order of travel, each once."""
    return np.array(list(dict.fromkeys(triple for path in paths for triple in path.triples)), dtype=np.int64)


def _stack(rows: list[NDArray[Any]], width: int) -> NDArray[np.float64]:
    return np.array(rows, dtype=np.float64).reshape(-1, width)
