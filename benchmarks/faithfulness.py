"""Do the paths carry the answer? Sufficiency and the deletion curve of the paths shown, against rivals.

For k = 1, 2, 3, 5 the first k paths are kept alone (sufficiency) and taken away (deletion). A rival has its own first k
paths, and in a second comparison as many of its paths as have at least as many edges as ours; random sets are paths of
the lengths of ours, drawn until they have at least as many edges. Where an explanation has fewer than k paths, all it
has count. Differences are paired by triple, with 95 % bootstrap intervals.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kgcf.evaluation.bootstrap import bootstrap
from kgcf.explanation.case import Case
from kgcf.explanation.necessity import score_sets
from kgcf.explanation.paths import Path
from kgcf.progress import Advance, silent
from rivals import RIVALS, at_least, edges_of, random_edges, removal_paths, rival_paths

COUNTS = (1, 2, 3, 5)
Row = dict[str, float]
_RESAMPLES = 2000


def measure_faithfulness(
    cases: Iterable[Case], seed: int, rule: str = "removal", advance: Advance = silent
) -> dict[str, Any]:
    """Both curves over the cases that a path answers."""
    generator = np.random.default_rng(seed)
    rows: list[dict[str, Row]] = []
    full, nothing = [], []
    asked = without_path = without_reason = 0
    for case in cases:
        advance(1)
        asked += 1
        shortest = rival_paths(case, "shortest")
        without_path += not shortest
        ours = removal_paths(case, max(COUNTS), rule) if shortest else ()
        without_reason += bool(shortest) and not ours
        if ours:
            rows.append(compare_sets(case, ours, generator))
            full.append(case.importance.logit)
            nothing.append(case.nothing.logit)
    return {
        "rule": rule,
        "asked": asked,
        "without_path": without_path,
        "without_reason": without_reason,
        "triples": len(rows),
        "logit": float(np.mean(full)) if full else None,
        "logit_with_no_evidence": float(np.mean(nothing)) if nothing else None,
        "points": [point(rows, count, seed) for count in COUNTS] if rows else [],
        "predicted": predicted(rows, full, seed),
    }


def predicted(rows: Sequence[dict[str, Row]], logits: Sequence[float], seed: int) -> dict[str, Any]:
    """The same for the triples that the model finds likely, with a logit above 0: why is asked of these."""
    kept = [row for row, logit in zip(rows, logits, strict=True) if logit > 0]
    return {"triples": len(kept), "points": [point(kept, count, seed) for count in COUNTS] if kept else []}


def compare_sets(case: Case, ours: Sequence[Path], generator: np.random.Generator) -> dict[str, Row]:
    """By count and rival: edges, the logit on them alone, and the drop without them."""
    sets: dict[str, frozenset[int]] = {}
    for count in COUNTS:
        own = edges_of(ours[:count])
        sets[f"{count} ours"] = own
        sets[f"{count} random"] = random_edges(case, ours[:count], generator)
        for name in RIVALS:
            paths = rival_paths(case, name)
            sets[f"{count} {name}"] = edges_of(paths[:count])
            sets[f"{count} {name}, as many edges"] = at_least(paths, len(own))
    distinct = sorted({*sets.values()}, key=sorted)
    scored = score_sets(case, distinct)
    place = {edges: i for i, edges in enumerate(distinct)}
    return {
        name: {
            "edges": len(edges),
            "alone": scored.alone[place[edges]].logit,
            "drop": float(scored.drops[place[edges]]),
        }
        for name, edges in sets.items()
    }


def point(rows: Sequence[dict[str, Row]], count: int, seed: int) -> dict[str, Any]:
    """The means after `count` paths, and ours minus every rival."""
    found: dict[str, Any] = defaultdict(dict)
    names = [name.removeprefix(f"{count} ") for name in rows[0] if name.startswith(f"{count} ")]
    for name in names:
        for figure in ("edges", "alone", "drop"):
            found[name][figure] = float(np.mean([row[f"{count} {name}"][figure] for row in rows]))
        if name != "ours":
            for figure in ("alone", "drop"):
                own = np.array([row[f"{count} ours"][figure] - row[f"{count} {name}"][figure] for row in rows])
                interval = bootstrap(own, np.random.default_rng(seed), _RESAMPLES)
                found[name][f"ours_minus_{figure}"] = [interval.value, interval.low, interval.high]
    return {"paths": count, **found}
