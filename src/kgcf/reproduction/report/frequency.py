"""Does the gain sit at rare relations, as the paper argues? From the per-relation results of table 3."""

from pathlib import Path
from statistics import fmean

import numpy as np
from scipy import stats

from kgcf.reproduction.report import pictures
from kgcf.reproduction.report.gathering import Gathered
from kgcf.reproduction.targets import BASE, PATHS

_LEAST = 5  # relations that a correlation needs
Point = tuple[int, float, float]  # train triples, gain in MRR, questions


def gains(found: Gathered, dataset: str) -> list[Point]:
    """Every relation with questions: its train triples, the mean gain over shared seeds, its questions."""
    ours, theirs = found.results(dataset, PATHS), found.results(dataset, BASE)
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
    points = {dataset: rows for dataset in found.datasets() if (rows := gains(found, dataset))}
    if not points:
        return []
    path = folder / "gain-by-frequency.svg"
    pictures.draw_gains(points, path)
    lines = ["## Does the gain sit at rare relations?", "", f"![Gain by frequency of the relation]({path.name})", ""]
    for dataset, rows in points.items():
        if len(rows) < _LEAST:
            lines.append(f"- {dataset}: only {len(rows)} relations, too few to say.")
            continue
        train, gain, _ = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
        if not np.ptp(train) or not np.ptp(gain):
            lines.append(f"- {dataset}: all relations are alike, nothing to correlate.")
            continue
        spearman = stats.spearmanr(train, gain)
        said = "cannot be told"
        if spearman.pvalue < 0.05:
            said = "yes" if spearman.statistic < 0 else "no, at frequent ones"
        figures = f"Spearman {spearman.statistic:+.2f}, p {spearman.pvalue:.3f}, {len(rows)} relations"
        lines.append(f"- {dataset}: {said} ({figures}).")
    return [*lines, ""]
