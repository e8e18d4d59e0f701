"""What holds of the paper, in one table: each claim, what the result files say of it, and how sure that is."""

from collections.abc import Mapping

from kgcf.reproduction.report.accuracy import is_apart, leader, stated_minutes
from kgcf.reproduction.report.differences import LEVEL, judged, sides, so_far
from kgcf.reproduction.report.frequency import correlations, points_of, sits_at_rare
from kgcf.reproduction.report.gathering import Gathered, markdown_table
from kgcf.reproduction.report.parts import losses_against_none
from kgcf.reproduction.targets import BASE, DEFAULT, PAPER, PATHS, PLAIN, TARGETS, WITHOUT

_OPEN = ["not begun", ""]
_CLAIMS = (
    ("table1", "KGCF has the highest MRR of all models (table 1)"),
    ("table3", f"KGCF is better than NBFNet: {PAPER} against {BASE} (table 3)"),
    ("table3", f"counterfactuals help our own model: {PATHS} against {PLAIN} (table 3)"),
    ("ablations", "the counterfactual losses help, in some variant (ablations)"),
    ("table3", "the gain sits at rare relations (table 3)"),
    ("table4", "answers take about as long as NBFNet's (table 4)"),
)
_RARE = _CLAIMS[4][1]
_PAIRS = {_CLAIMS[1][1]: (BASE, PAPER), _CLAIMS[2][1]: (PLAIN, PATHS)}


def claims_section(gathered: Mapping[str, Gathered | None]) -> list[str]:
    """A row for every claim."""
    rows = []
    for target, claim in _CLAIMS:
        found = gathered[target]
        if found is None:
            rows.append([claim, *_OPEN])
        elif claim in _PAIRS:
            rows.append([claim, *_difference(found, *_PAIRS[claim])])
        elif claim == _RARE:
            rows.append([claim, *_rare(found)])
        else:
            rows.append([claim, *{"table1": _highest, "ablations": _losses, "table4": _time}[target](found)])
    return [
        "## What holds of the paper",
        "",
        *markdown_table(["claim", "does it hold here?", "how sure"], rows, words=True),
    ]


def _highest(found: Gathered) -> list[str]:
    leaders = {dataset: first for dataset in found.datasets() if (first := leader(found, dataset)) and first.ours}
    models = {cell.variant for cell in TARGETS[found.target](found.scale)} - {DEFAULT}
    sayings: dict[str, list[str]] = {"yes on": [], "no on": [], "not told apart from another on": []}
    yes, no, level = sayings.values()
    for dataset, first in leaders.items():
        left = len(models) - len(first.means)
        minutes = stated_minutes(found, dataset)
        given = f"; other models had {minutes:g} minutes" if minutes else ""
        so_said = f"{first.rival or 'alone'}{given}{f'; {left} of {len(models)} models to come' if left else ''}"
        group = level if not is_apart(found, dataset, first) else yes if first.is_ours else no
        group.append(f"{dataset} ({so_said})")
    said = (
        "; ".join(f"{words} {', '.join(graphs)}" for words, graphs in sayings.items() if graphs) or "not computed yet"
    )
    missing = f", {found.wanted - len(found.found)} of {found.wanted} cells missing" * (found.wanted > len(found.found))
    sure = f"by mean MRR against the best of the others, p < {LEVEL} over seeds by Welch's test, not corrected"
    return [said, f"{sure}; {so_far(len(leaders), found)}{missing}"]


def _difference(found: Gathered, first: str, second: str) -> list[str]:
    result = judged(found, first, second)
    if not result.there:
        return ["not computed yet", ""]
    said = sides(result.settled) or "not shown on any graph"
    if result.unsettled:
        said += f"; not settled: {sides(result.unsettled)}"
    seeds = sorted({len(each.seeds) for each in result.there.values()})
    counted = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    bar = f"better or worse only where questions and seeds agree, p < {LEVEL}"
    return [said, f"{so_far(len(result.there), found)}, seeds: {counted}; {bar}"]


def _losses(found: Gathered) -> list[str]:
    helped, harmed, computed, seeds = [], [], 0, 0
    for dataset in found.datasets():
        against = losses_against_none(found, dataset)
        if not against:
            continue
        computed, seeds = computed + 1, max(seeds, *(len(each.comparison.seeds) for each in against.values()))
        if any(each.better for each in against.values()):
            helped.append(dataset)
        worse = sum(each.worse for each in against.values())
        harmed.append(f"{worse} of {len(against)} variants are worse on {dataset}")
    if not computed:
        return ["not computed yet", ""]
    said = f"yes on {', '.join(helped)}" if helped else f"no variant is shown to be better than “{WITHOUT}”"
    sure = (
        f"{so_far(computed, found)}, seeds: at most {seeds}; better where questions and seeds agree, worse over "
        f"questions, p < {LEVEL} corrected"
    )
    return ["; ".join([said, *harmed]), sure]


def _rare(found: Gathered) -> list[str]:
    points = points_of(found)
    by_answer: dict[str, list[str]] = {}
    for dataset, (correlation, p) in correlations(points).items():
        by_answer.setdefault(sits_at_rare(correlation, p), []).append(dataset)
    if not by_answer:
        return ["not computed yet", ""]
    said = "; ".join(f"{answer}: {', '.join(graphs)}" for answer, graphs in by_answer.items())
    few = len(points) - sum(map(len, by_answer.values()))
    without = f", {few} with too few relations to say" if few else ""
    return [said, f"{so_far(len(points), found)}{without}; rank correlation over relations, p < {LEVEL} corrected"]


def _time(found: Gathered) -> list[str]:
    seconds = [result["seconds"] for _, result in found.found]
    ratio = sum(map(sum, (each["kgcf"] for each in seconds))) / sum(map(sum, (each["nbfnet"] for each in seconds)))
    return [f"{ratio:.2f} times NBFNet's (the paper: 1.05)", "measured in one process, five parts"]
