"""Table 3 in words and numbers: is KGCF better than NBFNet, and by more than chance?"""

from collections.abc import Collection

import numpy as np

from kgcf.reproduction.report.gathering import Gathered, markdown_table, over_seeds, spread_over
from kgcf.reproduction.significance import Comparison, compare_ranks, holm
from kgcf.reproduction.targets import BASE, PAPER, PATHS, TREATED

_LEVEL = 0.05
_PRINTED = "The paper prints P < 0.005 for MRR and H@10 on WN18RR and does not say over what it pairs."


def compared(found: Gathered, dataset: str, first: str, second: str) -> Comparison | None:
    """Two variants on one graph, over the seeds that both have; None where they share none."""
    ours, theirs = found.results(dataset, second), found.results(dataset, first)
    seeds = sorted(set(ours) & set(theirs))
    if not seeds:
        return None
    before, after = (np.array([part[s]["ranks"] for s in seeds], dtype=np.float64) for part in (theirs, ours))
    return compare_ranks(before, after)


def differences_section(found: Gathered) -> list[str]:
    """MRR of all variants, then each against NBFNet."""
    lines = ["## Table 3: is the difference to NBFNet real?", "", found.line, ""]
    rows = [
        [dataset, *(over_seeds(found.results(dataset, variant).values(), "mrr", 4) for variant in found.variants())]
        for dataset in found.datasets()
    ]
    lines += [
        f"Test MRR{spread_over(found)}, the same passes for all variants, none with a memory; –: not computed yet.",
        "",
    ]
    lines += markdown_table(["graph", *found.variants()], rows)
    for variant in (TREATED, PAPER, PATHS):
        lines += _against_base(found, variant)
    return [*lines, _PRINTED, ""]


def _against_base(found: Gathered, variant: str) -> list[str]:
    """One variant against NBFNet on every graph: tests, effect, correction, verdict."""
    all_found = {dataset: compared(found, dataset, BASE, variant) for dataset in found.datasets()}
    there = {dataset: comparison for dataset, comparison in all_found.items() if comparison is not None}
    if not there:
        return []
    corrected = holm({dataset: comparison.permutation for dataset, comparison in there.items()})
    rows = [_row(dataset, comparison, corrected[dataset]) for dataset, comparison in there.items()]
    titles = ["graph", "ΔMRR", "95 % interval", "effect", "p t-test", "p permutation", "p corrected", "p over seeds"]
    return [
        f"### {variant} against {BASE}",
        "",
        "Paired over questions (each with its mean over seeds); effect: mean over standard deviation of the pairs; "
        "corrected: Holm, over the graphs; over seeds: paired t-test of the seeds' MRR.",
        "",
        *markdown_table(titles, rows),
        _verdict(variant, there, corrected),
        "",
    ]


def _row(dataset: str, comparison: Comparison, corrected: float) -> list[str]:
    spread = comparison.difference
    over_seeds_p = "" if comparison.seed_test is None else p_value(comparison.seed_test)
    return [
        dataset,
        f"{spread.value:+.4f}",
        f"{spread.low:+.4f} – {spread.high:+.4f}",
        f"{comparison.effect:+.3f}",
        p_value(comparison.t_test),
        p_value(comparison.permutation),
        p_value(corrected),
        over_seeds_p,
    ]


def p_value(value: float) -> str:
    """How a p value is printed."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _verdict(variant: str, there: dict[str, Comparison], corrected: dict[str, float]) -> str:
    """In plain words, counting only what survives the correction and the seeds' own spread."""
    sure = {name: there[name].difference.value for name in there if corrected[name] < _LEVEL}
    steady = {n for n in sure if (p := there[n].seed_test) is not None and p < _LEVEL}
    better = [name for name in sure if sure[name] > 0]
    worse = [name for name in sure if sure[name] < 0]
    parts = [f"better on {', '.join(better)}" if better else "", f"worse on {', '.join(worse)}" if worse else ""]
    said = " and ".join(part for part in parts if part) or "not shown to differ on any graph"
    graphs = f"{len(there)} graph{'s' * (len(there) != 1)}"
    return f"**{variant} is {said}** (p < {_LEVEL} after correction, {graphs}).{_over_seeds(there, sure, steady)}"


def _over_seeds(there: dict[str, Comparison], sure: Collection[str], steady: Collection[str]) -> str:
    """What the seeds' own spread says of the differences, where there are seeds to compare."""
    if all(comparison.seed_test is None for comparison in there.values()):
        return " One seed each so far: how much another seed would change is not known."
    if steady:
        return f" Also over seeds: {', '.join(sorted(steady))}."
    return " Over seeds alone nothing is sure." if sure else ""
