"""What validation says of the variants: it is what a default is chosen by, never the test set."""

from statistics import fmean

from scipy import stats

from kgcf.reproduction.report.differences import judged
from kgcf.reproduction.report.gathering import Gathered, markdown_table, mean_and_spread, spread_over
from kgcf.reproduction.targets import PAIRS, PATHS, PLAIN

_ROUNDING = 1e-12  # gains that differ by less are the same
_KEPT = (
    "it keeps them: counterfactual evidence is made of them",
    "so it should do without them",
    "so it keeps them",
)  # where validation is undecided, speaks against, asks for them


def choosing_section(found: Gathered) -> list[str]:
    """The best epoch's validation MRR of all variants, every pair's difference over the graphs, what follows."""
    rows = [
        [dataset, *(mean_and_spread(found.validation(dataset, variant).values(), 4) for variant in found.variants())]
        for dataset in found.datasets()
    ]
    lines = [
        "### What does validation say?",
        "",
        f"It is what a default is chosen by. Validation MRR of the epoch that was kept{spread_over(found)}.",
        "",
        *markdown_table(["graph", *found.variants()], rows),
        "Mean difference over the graphs, each with its mean over the seeds that both have; 95 % interval of a t-test "
        "over graphs.",
        "",
    ]
    return [*lines, *(_difference(found, first, second) for first, second in PAIRS), "", _choice(found), ""]


def _gains(found: Gathered, first: str, second: str) -> list[float]:
    """By how much the second variant is better, of every graph that has a seed of both."""
    gains = []
    for dataset in found.datasets():
        one, other = found.validation(dataset, first), found.validation(dataset, second)
        if shared := set(one) & set(other):
            gains.append(fmean(other[seed] - one[seed] for seed in sorted(shared)))
    return gains


def _interval(gains: list[float]) -> tuple[float, float] | None:
    """Of the mean over graphs; None with fewer than two."""
    if len(gains) < 2:
        return None
    if max(gains) - min(gains) < _ROUNDING:  # scipy would warn of it
        return gains[0], gains[0]
    found = stats.ttest_1samp(gains, 0.0).confidence_interval(0.95)
    return float(found.low), float(found.high)


def _difference(found: Gathered, first: str, second: str) -> str:
    gains = _gains(found, first, second)
    if not gains:
        return f"- {second} against {first}: not computed yet."
    interval = _interval(gains)
    sure = "one graph" if interval is None else f"{interval[0]:+.4f} – {interval[1]:+.4f}, {len(gains)} graphs"
    higher = sum(gain > 0 for gain in gains)
    return f"- {second} against {first}: {fmean(gains):+.4f} ({sure}), higher on {higher} of {len(gains)}."


def _choice(found: Gathered) -> str:
    """What preset `default` should be, by the pair in which nothing else differs."""
    interval = _interval(_gains(found, PLAIN, PATHS))
    if interval is None:
        return "What preset `default` should be cannot be told yet: it takes two graphs."
    low, high = interval
    place = 2 if low > 0 else 1 if high < 0 else 0
    said = ("does not decide about", "speaks against", "asks for")[place]
    lost = [name for name, gain in judged(found, PLAIN, PATHS).settled.items() if gain < 0]
    cost = f"on test they are shown to cost accuracy on {', '.join(lost)}" if lost else "on test no cost is shown"
    return f"**Validation {said} the counterfactual parts of preset `default`**: {_KEPT[place]}; {cost} (table 3)."
