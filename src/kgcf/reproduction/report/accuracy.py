"""Table 1 in words and numbers: all models on all graphs, the paper's figures beside ours, never mixed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy import stats

from kgcf.reproduction.published import PUBLISHED, SLIPS, Printed
from kgcf.reproduction.report.differences import LEVEL, p_value
from kgcf.reproduction.report.gathering import Gathered, markdown_table, over_seeds, spread_over
from kgcf.reproduction.store import Result
from kgcf.reproduction.targets import DEFAULT, PAPER, PATHS, TARGETS

_PRINTED_NAME = {PAPER: "kgcf", PATHS: "kgcf"}
_METRICS = ("mrr", "mr", "hits@1", "hits@3", "hits@10")


def accuracy_section(found: Gathered) -> list[str]:
    """Small graphs in one table, each large one in a table of its own, and which claims hold."""
    small = [dataset for dataset in found.datasets() if dataset not in PUBLISHED]
    lines = ["## Table 1: accuracy", "", found.line, ""]
    if small:
        lines += [f"Test MRR, filtered, both sides, realistic ties{spread_over(found)}; –: not computed yet.", ""]
        rows = [
            [variant, *(over_seeds(found.results(dataset, variant).values(), "mrr") for dataset in small)]
            for variant in found.variants()
        ]
        lines += [*markdown_table(["model", *small], rows), *_limits(found, small), *_seconds(found, small)]
    for dataset in (name for name in found.datasets() if name in PUBLISHED):
        lines += _large(found, dataset)
    return [*lines, *_verdict(found)]


def _seconds(found: Gathered, small: list[str]) -> list[str]:
    """How long the training of every model took on the small graphs."""
    rows = [
        [variant, *(_mean_seconds(found.results(dataset, variant).values()) for dataset in small)]
        for variant in found.variants()
    ]
    said = "Seconds of training, means over the seeds, on machines that did other work too; –: not computed yet."
    return [said, "", *markdown_table(["model", *small], rows)]


def _mean_seconds(results: Iterable[Result]) -> str:
    took = [float(result["times"]["training_seconds"]) for result in results]
    return f"{fmean(took):.0f}" if took else "–"


def _limits(found: Gathered, small: list[str]) -> list[str]:
    """Which of the small graphs had a stated time, and so figures that more time may raise."""
    lines = []
    for dataset in small:
        if minutes := stated_minutes(found, dataset):
            models = len({cell.variant for cell, _ in found.found if cell.dataset == dataset and cell.seconds})
            lines.append(
                f"{dataset}: {models} models had at most {minutes:g} minutes of training and one seed; "
                "more may raise them."
            )
    return [*lines, ""] if lines else []


def stated_minutes(found: Gathered, dataset: str) -> float | None:
    """What models were given on a graph where they are not trained to their end; None: on this one they are."""
    seconds = [cell.seconds for cell, _ in found.found if cell.dataset == dataset and cell.seconds is not None]
    return max(seconds) / 60 if seconds else None


def _large(found: Gathered, dataset: str) -> list[str]:
    """Ours in the time that every model had, and what the paper prints for models trained to the end."""
    rows, minutes = [], set()
    for variant in found.variants():
        results = list(found.results(dataset, variant).values())
        if not results:
            continue
        minutes |= {cell.seconds / 60 for cell, _ in found.found if cell.dataset == dataset and cell.seconds}
        took = fmean(result["times"]["training_seconds"] for result in results) / 60
        ours = [over_seeds(results, metric, 0 if metric == "mr" else 3) for metric in _METRICS]
        printed = PUBLISHED[dataset].get(_PRINTED_NAME.get(variant, variant))
        rows.append([variant, f"{took:.1f}", *ours, *_printed(printed)])
    limits = ", ".join(f"{value:g}" for value in sorted(minutes)) or "no limit of"
    note = f"Ours: {limits} minutes for every model, on a CPU; *min* is what training took.{_untimed(found, dataset)}"
    note += " The paper's: as printed, trained to the end."
    titles = ["model", "min", "MRR", "MR", "H@1", "H@3", "H@10", "paper MRR", "paper MR", "paper H@10"]
    return [f"### {dataset}", "", note, "", *markdown_table(titles, rows), SLIPS, ""]


def _untimed(found: Gathered, dataset: str) -> str:
    """Which models had a number of passes instead of the time, and which."""
    own = {cell.variant: result for cell, result in found.found if cell.dataset == dataset and cell.seconds is None}
    if not own:
        return ""
    passes = " or ".join(f"{count:,}" for count in sorted({int(each["protocol"]["passes"]) for each in own.values()}))
    return (
        f" {', '.join(own)}: {passes} passes instead, the same for all variants, which take longer than the others had."
    )


def _printed(row: Printed | None) -> list[str]:
    if row is None:
        return ["", "", ""]
    return [
        "–" if math.isnan(value) else f"{value:.{digits}f}"
        for value, digits in ((row.mrr, 3), (row.mr, 0), (row.hits10, 3))
    ]


@dataclass(frozen=True)
class Leader:
    """Who has the highest mean MRR on a graph, among the models by paths alone; of ours, and of the others."""

    best: str
    ours: str | None
    rival: str | None
    means: dict[str, float]

    @property
    def is_ours(self) -> bool:
        """Whether KGCF is before all others."""
        return self.best == self.ours


def leader(found: Gathered, dataset: str) -> Leader | None:
    """None where only the variant with a memory is computed, which the paper does not have."""
    means = {
        variant: fmean(float(result["metrics"]["mrr"]) for result in results.values())
        for variant in found.variants()
        if variant != DEFAULT and (results := found.results(dataset, variant))
    }
    if not means:
        return None
    ours = max((v for v in means if v in _PRINTED_NAME), key=lambda v: means[v], default=None)
    rival = max((v for v in means if v not in _PRINTED_NAME), key=lambda v: means[v], default=None)
    return Leader(max(means, key=lambda variant: means[variant]), ours, rival, means)


def _verdict(found: Gathered) -> list[str]:
    """Who is best where: the paper says KGCF, everywhere and by every measure; its KGCF has no memory."""
    asked = f"**Does KGCF have the best figures?** By paths alone, as in the paper; {DEFAULT} adds a memory."
    lines = [asked, ""]
    models = {cell.variant for cell in TARGETS[found.target](found.scale)} - {DEFAULT}
    for dataset in found.datasets():
        first = leader(found, dataset)
        if first is None:
            continue
        minutes = stated_minutes(found, dataset)
        given = f" (the others with {minutes:g} minutes)" if minutes else ""
        both = found.results(dataset, DEFAULT).values()
        more = f" {DEFAULT}, with memory where it helps: {over_seeds(both, 'mrr')}." if both else ""
        left = len(models) - len(first.means)
        so_far = f" so far ({left} of {len(models)} models are to come)" if left else ""
        best = f"{first.best} ({first.means[first.best]:.3f})"
        if first.ours is None:
            lines.append(f"- {dataset}{given}: KGCF is not computed yet; the best so far is {best}.{more}")
        elif first.is_ours:
            lines.append(
                f"- {dataset}{given}: yes by mean MRR{so_far}, {best}; {_how_sure(found, dataset, first)}.{more}"
            )
        else:
            ours = f"{first.ours} ({first.means[first.ours]:.3f}){so_far}; {_how_sure(found, dataset, first)}"
            lines.append(f"- {dataset}{given}: no, {best} is before {ours}.{more}")
    return [*lines, ""]


def is_apart(found: Gathered, dataset: str, first: Leader) -> bool:
    """Whether the seeds tell the best of ours from the best of the others."""
    p = _lead(found, dataset, first)
    return p is not None and p < LEVEL


def _lead(found: Gathered, dataset: str, first: Leader) -> float | None:
    """p that the lead is chance, by the seeds' own spread; None with one seed.

    No pairing, since other models draw other random numbers.
    """
    if first.ours is None or first.rival is None:
        return None
    values = [
        [float(result["metrics"]["mrr"]) for result in found.results(dataset, variant).values()]
        for variant in (first.rival, first.ours)
    ]
    if min(map(len, values)) < 2:
        return None
    moments = [(fmean(each), stdev(each), len(each)) for each in values]
    if not any(spread for _, spread, _ in moments):
        return 0.0
    return float(stats.ttest_ind_from_stats(*moments[0], *moments[1], equal_var=False).pvalue)


def _how_sure(found: Gathered, dataset: str, first: Leader) -> str:
    """What the seeds say of a lead."""
    p = _lead(found, dataset, first)
    if p is None:
        return "with one seed, not settled"
    return "all seeds alike" if p == 0 else f"over seeds p {p_value(p)}, Welch's t-test"
