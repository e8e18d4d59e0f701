"""Do two models that differ in their seed alone give the same reasons? The overlap of their first paths."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from kgcf.explanation.case import Case
from kgcf.explanation.patterns import pattern_of
from kgcf.progress import Advance, silent
from rivals import RIVALS, removal_paths, rival_paths

WAYS = ("removal", *RIVALS[:2])  # the shortest path does not depend on the model


def measure_stability(pairs: Iterable[tuple[Case, Case]], advance: Advance = silent) -> dict[str, Any]:
    """How often the first path is the same, and how often its relations are; one without a path agrees with none."""
    same: dict[str, list[bool]] = {name: [] for name in WAYS}
    alike: dict[str, list[bool]] = {name: [] for name in WAYS}
    asked = 0
    for cases in pairs:
        advance(1)
        if not all(case.importance.reached for case in cases):
            continue
        asked += 1
        for name in WAYS:
            firsts = [removal_paths(c, 1) if name == "removal" else rival_paths(c, name, 1) for c in cases]
            both = all(firsts)
            same[name].append(both and firsts[0][0].triples == firsts[1][0].triples)
            alike[name].append(both and pattern_of(firsts[0][0]) == pattern_of(firsts[1][0]))
    return {
        "asked": asked,
        **{
            name: {"same_path": float(np.mean(same[name])), "same_relations": float(np.mean(alike[name]))}
            for name in WAYS
        },
    }
