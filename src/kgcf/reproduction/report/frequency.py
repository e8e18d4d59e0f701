"""Does the gain sit at rare relations, as the paper argues? From the per-relation results of table 3."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy import stats

from kgcf.reproduction.report import pictures
from kgcf.reproduction.report.differences import p_value
from kgcf.reproduction.report.gathering import Gathered
from kgcf.reproduction.significance import holm
from kgcf.reproduction.targets import BASE, PATHS, PLAIN

_LEAST = 5  # relations that a correlation needs
_LEVEL = 0.05
Point = tuple[int, float, float]  # train triples, gain in MRR, questions


def reference(found: Gathered, dataset: str) -> str:
    """What the gain is over: the variant that differs in nothing but what is counterfactual, once it is computed."""
    return PLAIN if set(found.results(dataset, PLAIN)) & set(found.results(dataset, PATHS)) else BASE


def gains(found: Gathered, dataset: str) -> list[Point]:
    """Every relation with questions: its train triples, the mean gain over shared seeds, its questions."""
    ours, theirs = found.results(dataset, PATHS), found.results(dataset, reference(found, dataset))
    seeds = sorted(set(ours) & set(theirs))
    if not seeds:
        return []
    first = theirs[seeds[0]]
    return [
        (
            first["train_triples"][relation],
            fmean(ours[s]["per_relation"][relation]["mrr"] - theirs[s]["per_relation"][relation]["mrr"] for s in seeds),
            row["count"],
        )
        for relation, row in first["per_relation"].items()
        if first["train_triples"][relation] > 0
    ]


def frequency_section(found: Gathered, folder: Path) -> list[str]:
    """A picture, and the rank correlation between frequency and gain on every graph."""
    points = points_of(found)
    if not points:
        return []
    path = folder / "gain-by-frequency.svg"
    pictures.draw_gains(points, path)
    lines = ["## Does the gain sit at rare relations?", "", f"![Gain by frequency of the relation]({path.name})", ""]
    lines += [
        f"{PATHS}: rank correlation, over relations, of the gain with the number of train triples; p corrected by Holm "
        "over the graphs. “Yes” says that the gain falls with frequency, not that there is one: that is table 3's.",
        "",
    ]
    found_out = correlations(points)
    for dataset, rows in points.items():
        over = f"over {reference(found, dataset)}"
        if dataset not in found_out:
            lines.append(f"- {dataset}, {over}: {len(rows)} relations, too few or too much alike to say.")
            continue
        correlation, p = found_out[dataset]
        figures = f"Spearman {correlation:+.2f}, p {p_value(p)}, {len(rows)} relations"
        lines.append(f"- {dataset}, {over}: {sits_at_rare(correlation, p)} ({figures}).")
    return [*lines, ""]


def points_of(found: Gathered) -> dict[str, list[Point]]:
    """The relations of every graph that has both variants."""
    return {dataset: rows for dataset in found.datasets() if (rows := gains(found, dataset))}


def correlations(points: Mapping[str, list[Point]]) -> dict[str, tuple[float, float]]:
    """Spearman's correlation of every graph that has one, with its p, corrected for the number of graphs."""
    found = {dataset: rank for dataset, rows in points.items() if (rank := _correlation(rows)) is not None}
    corrected = holm({dataset: p for dataset, (_, p) in found.items()})
    return {dataset: (correlation, corrected[dataset]) for dataset, (correlation, _) in found.items()}


def sits_at_rare(correlation: float, p: float) -> str:
    """Whether the gain sits at rare relations, in a word."""
    if p >= _LEVEL:
        return "cannot be told"
    return "yes" if correlation < 0 else "no, at frequent ones"


def _correlation(rows: list[Point]) -> tuple[float, float] | None:
    """Spearman's, with its p; None where there are too few relations, or all are alike."""
    train, gain, _ = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    if len(rows) < _LEAST or not np.ptp(train) or not np.ptp(gain):
        return None
    spearman = stats.spearmanr(train, gain)
    return float(spearman.statistic), float(spearman.pvalue)
