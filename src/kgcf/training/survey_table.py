"""A survey and what the rule made of it as a small table: for every depth the negatives that promise most."""

from collections.abc import Sequence

from kgcf.plain_tables import text_table
from kgcf.training.choice import Choice
from kgcf.training.survey import PassCost, Survey

_TITLES = (
    "",
    "layers",
    "negatives",
    "fan-in",
    "within reach",
    "updates",
    "messages",
    "ms per pass",
    "ms per ranking",
    "passes",
)


def survey_table(survey: Survey, options: Sequence[Choice], chosen: Choice) -> str:
    """A row per depth, with the passes that fit and their worth; ~ where the cost model speaks alone.

    Fan-ins have a column where there is one to choose.
    """
    rows = []
    for layers in dict.fromkeys(cost.layers for cost in survey.passes):
        fitting = [option for option in options if option.layers == layers]
        shown = chosen if layers == chosen.layers else max(fitting, key=lambda option: option.worth, default=None)
        costs = [cost for cost in survey.passes if cost.layers == layers]
        rows.append(_row(survey, costs[0] if shown is None else _cost_of(shown, costs), shown, marked=shown is chosen))
    titles = [*_TITLES, "worth"]
    if all(cost.fan_in is None for cost in survey.passes):
        place = titles.index("fan-in")
        titles.pop(place)
        rows = [row[:place] + row[place + 1 :] for row in rows]
    return text_table(titles, rows, ("<", *(">" for _ in titles[1:])))


def _cost_of(choice: Choice, costs: Sequence[PassCost]) -> PassCost:
    wanted = choice.negatives, choice.fan_in
    return next(cost for cost in costs if (cost.negatives, cost.fan_in) == wanted)


def _row(survey: Survey, cost: PassCost, shown: Choice | None, marked: bool) -> tuple[str, ...]:
    ranked = any(rank.measured for rank in survey.ranks if rank.layers == cost.layers)
    return (
        "→" if marked else "",
        str(cost.layers),
        str(cost.negatives),
        "all" if cost.fan_in is None else str(cost.fan_in),
        f"{survey.reached(cost.layers):.0%}",
        f"{cost.work.updates:,.0f}",
        f"{cost.work.messages:,.0f}",
        _time(cost.milliseconds, cost.measured),
        _time(survey.ranking(cost.layers) * 1e3, ranked),
        "too few" if shown is None else f"{shown.passes:,}",
        "" if shown is None else f"{shown.worth:.2f}",
    )


def _time(milliseconds: float, measured: bool) -> str:
    return f"{'' if measured else '~'}{milliseconds:.{1 if milliseconds >= 10 else 2}f}"
