"""Table 3 in words and numbers: is KGCF better than NBFNet, and by more than chance?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.errors import StorageError
from kgcf.reproduction.report.gathering import Gathered, markdown_table, over_seeds, spread_over
from kgcf.reproduction.significance import Comparison, compare_gains, compare_ranks, holm
from kgcf.reproduction.targets import PAIRS, PAPER, PLAIN, TENTHS

LEVEL = 0.05
_PRINTED = "The paper prints P < 0.005 for MRR and H@10 on WN18RR and does not say over what it pairs."
_READING = (
    "Paired over questions (each with its mean over the seeds that both have): a t-test and a permutation test; "
    "effect: mean over standard deviation of the pairs, with its 95 % interval. ΔH@10 with a permutation test over "
    "questions, not corrected. Over seeds: a paired t-test of the seeds' MRR. Corrected by "
    "Holm over the graphs: the permutation test, and the weaker of it and the test over seeds (*both*). Only what "
    "*both* says would hold of other questions and of other trainings; a test over questions takes the trained weights "
    "as given."
)
_SEARCHED = (
    f"The paper decides α and β by a grid search. {PAPER} has those of the grid that validation prefers on wn18rr:v1 "
    f"(figure 4), on every graph; {TENTHS} shows what the search is worth."
)
_TITLES = ("graph", "seeds", "ΔMRR", "95 % interval", "effect", "p t-test", "p permutation", "p over seeds")
_TITLES_TOP = ("ΔH@10", "p H@10")
_TOP = 10
_NOT_COUNTERFACTUAL = ("encoder.", "training.", "memory.")  # sections in which nothing is


def ranks_of(found: Gathered, dataset: str, variants: Iterable[str]) -> list[NDArray[np.float64]] | None:
    """The ranks [S, Q] of every variant, over the seeds that all of them have; None where they share none."""
    results = [found.results(dataset, variant) for variant in variants]
    seeds = sorted(set.intersection(*(set(each) for each in results)))
    if not seeds:
        return None
    asked = {len(each[seed]["ranks"]) for each in results for seed in seeds}
    if len(asked) > 1:
        raise StorageError(
            f"Cells of {dataset} have {' and '.join(map(str, sorted(asked)))} questions and cannot be paired: the data "
            "have changed between them. Delete the older ones, and `kgcf reproduce` computes them again."
        )
    return [np.array([each[seed]["ranks"] for seed in seeds], dtype=np.float64) for each in results]


def compared(found: Gathered, dataset: str, first: str, second: str) -> Comparison | None:
    """Two variants on one graph, over the seeds that both have; None where they share none."""
    ranks = ranks_of(found, dataset, (first, second))
    return None if ranks is None else compare_ranks(*ranks)


def differences_section(found: Gathered) -> list[str]:
    """MRR of all variants, then each against what it is to be compared with."""
    lines = ["## Table 3: is the difference to NBFNet real?", "", found.line, ""]
    rows = [
        [dataset, *(over_seeds(found.results(dataset, variant).values(), "mrr", 4) for variant in found.variants())]
        for dataset in found.datasets()
    ]
    lines += [
        f"Test MRR{spread_over(found)}, the same passes for all variants, none with a memory; –: not computed yet.",
        "",
    ]
    lines += [*markdown_table(["graph", *found.variants()], rows), _SEARCHED, "", _READING, ""]
    for first, second in PAIRS:
        lines += _against(found, first, second)
    return [*lines, _PRINTED, ""]


@dataclass(frozen=True)
class Judged:
    """A variant against another on every graph that has both, with p values corrected for the number of graphs."""

    there: dict[str, Comparison]
    questions: dict[str, float]  # over questions alone
    both: dict[str, float]  # the weaker of questions and seeds

    @property
    def settled(self) -> dict[str, float]:
        """The differences that would hold of other questions and other trainings."""
        return {name: each.difference.value for name, each in self.there.items() if self.both[name] < LEVEL}

    @property
    def unsettled(self) -> dict[str, float]:
        """The differences that the questions show of these trainings, and the seeds do not confirm."""
        return {
            name: each.difference.value
            for name, each in self.there.items()
            if self.questions[name] < LEVEL <= self.both[name]
        }


def judged(found: Gathered, first: str, second: str) -> Judged:
    """The second variant against the first."""
    all_found = {dataset: compared(found, dataset, first, second) for dataset in found.datasets()}
    there = {dataset: comparison for dataset, comparison in all_found.items() if comparison is not None}
    questions = holm({dataset: comparison.permutation for dataset, comparison in there.items()})
    return Judged(there, questions, holm({dataset: comparison.weaker for dataset, comparison in there.items()}))


def _against(found: Gathered, first: str, second: str) -> list[str]:
    """One variant against another on every graph: what differs, tests, effect, correction, verdict."""
    result = judged(found, first, second)
    title = [f"### {second} against {first}", ""]
    if not result.there:
        return [*title, "Not computed yet: no graph has a seed of both.", ""]
    rows = [
        [
            *_row(dataset, comparison),
            p_value(result.questions[dataset]),
            p_value(result.both[dataset]),
            *_top(found, dataset, first, second),
        ]
        for dataset, comparison in result.there.items()
    ]
    return [
        *title,
        *_what_differs(found, first, second),
        *markdown_table([*_TITLES, "p corrected", "both", *_TITLES_TOP], rows),
        _verdict(second, result, found),
        "",
    ]


def _what_differs(found: Gathered, first: str, second: str) -> list[str]:
    """The settings that the result files of the two say differently, and which of them are not counterfactual."""
    named = dict[str, str]()
    for dataset in found.datasets():
        one, other = (found.results(dataset, variant) for variant in (first, second))
        for seed in sorted(set(one) & set(other)):
            named |= _differing(one[seed].get("configuration", {}), other[seed].get("configuration", {}))
    if not named:
        return []
    lines = [f"What differs: {', '.join(f'{name} {values}' for name, values in named.items())}."]
    if besides := [name for name in named if name.startswith(_NOT_COUNTERFACTUAL)]:
        lines[0] += (
            f" **Not counterfactual among these: {', '.join(besides)}**; a difference may come from them, and "
            f"“{PLAIN}” has them too."
        )
    return [*lines, ""]


def _differing(one: Mapping[str, Mapping[str, object]], other: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    return {
        f"{section}.{key}": f"({values[key]} → {other[section][key]})"
        for section, values in one.items()
        for key in values
        if key in other.get(section, {}) and values[key] != other[section][key]
    }


def _row(dataset: str, comparison: Comparison) -> list[str]:
    spread = comparison.difference
    return [
        dataset,
        str(len(comparison.seeds)),
        f"{spread.value:+.4f}",
        f"{spread.low:+.4f} – {spread.high:+.4f}",
        f"{comparison.effect.value:+.2f} ({comparison.effect.low:+.2f} – {comparison.effect.high:+.2f})",
        p_value(comparison.t_test),
        p_value(comparison.permutation),
        "" if comparison.seed_test is None else p_value(comparison.seed_test),
    ]


def _top(found: Gathered, dataset: str, first: str, second: str) -> list[str]:
    """How many more answers are among the first ten, and the p of a permutation test over questions."""
    ranks = ranks_of(found, dataset, (first, second))
    assert ranks is not None
    one, other = ((each <= _TOP).astype(np.float64) for each in ranks)
    gained = compare_gains(other - one)
    return [f"{gained.difference.value:+.4f}", p_value(gained.permutation)]


def p_value(value: float) -> str:
    """How a p value is printed."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _verdict(variant: str, result: Judged, found: Gathered) -> str:
    """In plain words: what survives the correction and the seeds' own spread, and what only the questions say."""
    said = sides(result.settled) or "not shown to differ on any graph"
    graphs = so_far(len(result.there), found)
    sentence = f"**{variant} is {said}** (p < {LEVEL} over questions and over seeds, after correction; {graphs})."
    if result.unsettled:
        sentence += (
            f" Over questions alone it is {sides(result.unsettled)}: so with these seeds, not settled for others."
        )
    if all(comparison.seed_test is None for comparison in result.there.values()):
        sentence += " One seed each so far: how much another seed would change is not known."
    return sentence


def so_far(graphs: int, found: Gathered) -> str:
    """How many of the graphs that a target asks for are there."""
    planned = len(found.datasets()) + len(found.missing)
    return f"{planned} graphs" if graphs == planned else f"{graphs} of {planned} graphs so far"


def sides(gains: Mapping[str, float]) -> str:
    """On which graphs it is better and on which worse; empty where there is none."""
    better, worse = ([name for name in gains if sign * gains[name] > 0] for sign in (1, -1))
    parts = [f"better on {', '.join(better)}" if better else "", f"worse on {', '.join(worse)}" if worse else ""]
    return " and ".join(part for part in parts if part)
