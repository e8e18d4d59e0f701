"""Paths by re-scoring: what the score loses without them, and what they give by themselves.

The value of a set of paths is what the logit loses without their edges, plus what the graph of these paths alone has
over no evidence. The first asks whether the answer needs them, the second whether they say it: many paths share an
edge that is needed, but few of them lead to the answer by themselves; and of two paths that say the same, neither is
needed. They are the last and the first step of a Shapley value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.explanation.candidates import find_candidates
from kgcf.explanation.case import Case
from kgcf.explanation.outcome import LEAST, Outcome, PathEffect, rises
from kgcf.explanation.paths import Path

FINALISTS = 12  # candidates that are tried again beside the paths chosen already
Triples = frozenset[int]  # of the graph
ValueOf = Callable[["Scored"], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Scored:
    """Sets of triples, each taken away and each alone."""

    without: tuple[Outcome, ...]
    alone: tuple[Outcome, ...]
    drops: NDArray[np.float64] = field(repr=False)  # of the logit, without each
    gains: NDArray[np.float64] = field(repr=False)  # logit on each alone − logit with no evidence


@dataclass(frozen=True, eq=False)
class Tried:
    """Candidates, each scored without its edges and on its own."""

    paths: tuple[Path, ...]
    scored: Scored
    opposed: NDArray[np.bool_] = field(repr=False)  # the probability rises noticeably without the path

    def against(self, most: int) -> tuple[int, ...]:
        """The paths without which the score rises, the one that holds it down most first."""
        order = np.argsort(self.scored.drops, kind="stable")
        return tuple(int(i) for i in order if self.opposed[i])[:most]


def score_sets(case: Case, sets: Sequence[Triples]) -> Scored:
    """Score a case without each set of triples and on each alone: two batches, however many sets."""
    rows = [np.array(sorted(chosen), dtype=np.int64) for chosen in sets]
    without, alone = case.without(rows), case.alone(rows)
    drops = np.array([case.fall_to(outcome) for outcome in without])
    gains = np.array([case.fall_to(case.nothing) - case.fall_to(outcome) for outcome in alone])
    return Scored(without, alone, drops, gains)


def drop_and_gain(scored: Scored) -> NDArray[np.float64]:
    """The value of sets: what the score loses without them plus what they give by themselves."""
    return scored.drops + scored.gains


def try_paths(case: Case, paths: Sequence[Path]) -> Tried:
    """Score a case without each path and on each alone."""
    scored = score_sets(case, [frozenset(path.triples) for path in paths])
    opposed = np.array([rises(case.probability, outcome.probability) for outcome in scored.without], dtype=bool)
    return Tried(tuple(paths), scored, opposed)


def try_candidates(case: Case, count: int) -> Tried:
    """Score the candidates of a case, `count` of each kind; none where no path leads to the tail."""
    return try_paths(case, find_candidates(case, count) if case.importance.reached else ())


def choose_paths(
    case: Case, tried: Tried, top: int, finalists: int = FINALISTS, value_of: ValueOf = drop_and_gain
) -> tuple[int, ...]:
    """The paths to show, by their position among those tried: first the one of greatest value, then by joint value.

    Never one without which the score rises, however little. The next path must not give back any of the joint drop of
    those before it, and must add `LEAST` to that or to their value; from the second on, the `finalists` best by
    themselves compete. `value_of` is there to compare: other values choose worse paths (docs/explanations.md).
    """
    drops, values = tried.scored.drops, value_of(tried.scored)
    left = [int(i) for i in np.argsort(-values, kind="stable") if drops[i] >= 0]
    if not left or values[left[0]] < LEAST:
        return ()
    chosen, left = left[:1], left[1 : 1 + finalists]
    drop, value = drops[chosen[0]], values[chosen[0]]
    while left and len(chosen) < top:
        taken = frozenset(triple for i in chosen for triple in tried.paths[i].triples)
        joint = score_sets(case, [taken | set(tried.paths[i].triples) for i in left])
        worth = value_of(joint)
        adds = (joint.drops >= drop) & ((joint.drops >= drop + LEAST) | (worth >= value + LEAST))
        if not adds.any():
            break
        best = int(np.argmax(np.where(adds, worth, -np.inf)))
        drop, value = joint.drops[best], worth[best]
        chosen.append(left.pop(best))
    return tuple(chosen)


def path_effects(case: Case, tried: Tried, shown: Sequence[int]) -> tuple[PathEffect, ...]:
    """What the paths at these positions do, each by itself and together with those shown before it."""
    taken: set[int] = set()
    unions = []
    for i in shown:
        taken |= {*tried.paths[i].triples}
        unions.append(np.array(sorted(taken), dtype=np.int64))
    joint, scored = case.without(unions), tried.scored
    return tuple(
        PathEffect(float(scored.drops[i]), scored.without[i], scored.alone[i], together)
        for i, together in zip(shown, joint, strict=True)
    )


def remove_subsets(case: Case, paths: Sequence[Path]) -> tuple[Outcome, ...]:
    """[2^P] the outcome without every subset of the paths; bit i of the position says that path i is removed."""
    sets: list[Triples] = [frozenset()]
    for path in paths:
        sets += [chosen | set(path.triples) for chosen in sets]
    return case.without([np.array(sorted(chosen), dtype=np.int64) for chosen in sets])
