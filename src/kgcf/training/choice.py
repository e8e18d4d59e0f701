"""The rule: which layers, negatives, fan-in and passes promise most in the time there is: a function of the survey.

The worth of a choice is a product of five shares, each 1 if nothing is missing:

    reach(L)^REACH_POWER · (1 − SHALLOW / 2^(L − 1)) · P / (P + HALF_LEARNED) · K / (K + HALF_NEGATIVES) · THINNED

for L layers, P passes and K negatives; the last where training has a fan-in. The constants were fitted to published and
own results on WN18RR and FB15k-237 (docs/training.md); they are here and nowhere else.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from kgcf.durations import spoken
from kgcf.errors import SettingsError
from kgcf.training.survey import PassCost, Survey

DEPTHS = tuple(range(2, 9))  # layers that are looked at
NEGATIVES = (32, 64, 128, 256)
FAN_IN = 64  # edges that an update aggregates at most, where passes would be too few with all of them
REACH_POWER = 0.2  # answers out of reach are the hard ones: half of the reach is 87 % of the worth
SHALLOW = 0.25  # what one layer misses though the answers are within reach; every further layer halves it
HALF_LEARNED = 3600  # passes after which a model has learned half of what it will
HALF_NEGATIVES = 1  # likewise for negatives
THINNED = 0.97  # what passes with that fan-in are worth beside as many with all edges: .98, and where alike, all edges
INDIFFERENT = 0.01  # of the worth: the cheapest choice that is not worse by more is taken,
SAVING = 0.1  # of the time of the best: if it saves so much
RESERVE = 0.1  # of the time: kept back for what the survey cannot know, a machine that becomes slower above all,
SHORT = 100  # seconds; up to them twice as much, later so much more as here: a short survey knows less
VALIDATION_SHARE = 0.15  # of the time that training and validation have: more only to validate LEAST_VALIDATED triples
LEAST_VALIDATED = 1000  # triples; fewer do not tell models apart
LEAST_STEPS = 50  # fewer are no training


class TimeError(SettingsError):
    """The time does not suffice."""


@dataclass(frozen=True)
class Fixed:
    """What others than the rule have said; None: the rule may choose. Depth and negatives are fixed by the survey."""

    epochs: int  # never more
    budget: int | None = None  # passes: never more where the preset says so, exactly so many where the user does
    exact: bool = False  # whether the budget is the user's
    validate_triples: int | None = None


@dataclass(frozen=True)
class Choice:
    """What the rule chose, and what it expects."""

    layers: int
    negatives: int
    threads: int
    passes: int
    budget: int | None  # None: the epochs end before the time does
    validate_triples: int | None
    worth: float
    seconds: float  # of the whole command from here on
    reason: str = ""
    fan_in: int | None = None


def worth(reach: float, layers: int, negatives: int, passes: float, fan_in: int | None = None) -> float:
    """What share of the best imaginable accuracy a choice promises."""
    deep = 1 - SHALLOW / 2 ** (layers - 1)
    learned = passes / (passes + HALF_LEARNED) * negatives / (negatives + HALF_NEGATIVES)
    return float(reach**REACH_POWER * deep * learned * (1 if fan_in is None else THINNED))


def choose(survey: Survey, seconds: float, fixed: Fixed, spent: float = 0.0) -> Choice:
    """The choice of most worth that ends in time, or a cheaper one that is as good; some seconds may be spent."""
    options = list_options(survey, seconds, fixed, spent)
    if not options:
        raise TimeError(_too_little(survey, seconds, fixed, spent))
    best = max(options, key=lambda option: option.worth)
    good = [option for option in options if option.worth >= best.worth * (1 - INDIFFERENT)]
    cheap = [option for option in good if option.seconds <= best.seconds * (1 - SAVING)]
    chosen = min(cheap, key=lambda option: option.seconds, default=best)
    return Choice(**{**vars(chosen), "reason": _reason(survey, chosen, best, options)})


def list_options(survey: Survey, seconds: float, fixed: Fixed, spent: float = 0.0) -> list[Choice]:
    """Every depth, number of negatives and fan-in that was surveyed and ends in time, with as many passes as fit."""
    usable = usable_seconds(seconds - spent)
    return [option for cost in survey.passes if (option := _filled(survey, cost, usable, fixed)) is not None]


def usable_seconds(seconds: float) -> float:
    """What is left of a time when some of it has been kept back."""
    return seconds - RESERVE * (seconds + min(seconds, SHORT))


def _time_for(usable: float) -> float:
    """The time of which so much is usable."""
    short = usable / (1 - 2 * RESERVE)
    return short if short <= SHORT else (usable + RESERVE * SHORT) / (1 - RESERVE)


def least_seconds(survey: Survey, fixed: Fixed) -> float:
    """The least time in which anything can be trained."""
    least = _least_passes(survey, fixed)
    return _time_for(min(_expected(survey, cost, least, fixed)[0] for cost in survey.passes))


def _filled(survey: Survey, cost: PassCost, usable: float, fixed: Fixed) -> Choice | None:
    """What was surveyed, with as many passes as fit; None if too few do."""
    passes = _most_passes(survey, cost, usable, fixed)
    if passes is None:
        return None
    expected, triples = _expected(survey, cost, passes, fixed)
    value = worth(survey.reached(cost.layers), cost.layers, cost.negatives, passes, cost.fan_in)
    budget = passes if passes < fixed.epochs * survey.sweep else None
    size = cost.layers, cost.negatives, cost.threads
    return Choice(*size, passes, budget, triples, value, expected, fan_in=cost.fan_in)


def _least_passes(survey: Survey, fixed: Fixed) -> int:
    most = _bound(survey, fixed)
    return most if fixed.exact else min(most, LEAST_STEPS * survey.batch)


def _bound(survey: Survey, fixed: Fixed) -> int:
    """The most passes that epochs and budget allow."""
    most = fixed.epochs * survey.sweep
    return most if fixed.budget is None else min(most, fixed.budget)


def _most_passes(survey: Survey, cost: PassCost, usable: float, fixed: Fixed) -> int | None:
    """The most whole steps between the least and the most passes that end in time, by bisection."""
    least, most = _least_passes(survey, fixed), _bound(survey, fixed)
    if _expected(survey, cost, least, fixed)[0] > usable:
        return None
    if _expected(survey, cost, most, fixed)[0] <= usable:
        return most
    low, high = least // survey.batch, most // survey.batch + 1  # in steps; low fits, high does not
    while high - low > 1:
        middle = (low + high) // 2
        fits = _expected(survey, cost, middle * survey.batch, fixed)[0] <= usable
        low, high = (middle, high) if fits else (low, middle)
    return max(low * survey.batch, least)


def _expected(survey: Survey, cost: PassCost, passes: int, fixed: Fixed) -> tuple[float, int | None]:
    """Seconds of the whole command with so many passes, and how many triples a validation then asks about."""
    ranking, asked = survey.ranking(cost.layers), survey.questions
    after = sum(survey.stages.values()) + ranking * (asked.calibration + asked.test)
    training = passes * cost.milliseconds / 1e3
    if not asked.valid_triples:
        return after + training, fixed.validate_triples
    validations = max(1, math.ceil(passes / survey.sweep))
    per_triple = ranking * asked.valid / asked.valid_triples * validations
    triples = fixed.validate_triples
    if triples is None:
        affordable = int(VALIDATION_SHARE / (1 - VALIDATION_SHARE) * training / max(per_triple, 1e-12))
        triples = max(affordable, LEAST_VALIDATED)
    limit = triples if triples < asked.valid_triples else None
    validated = per_triple * min(triples, asked.valid_triples)
    return after + training + validated, limit if fixed.validate_triples is None else fixed.validate_triples


def _too_little(survey: Survey, seconds: float, fixed: Fixed, spent: float) -> str:
    least = spent + least_seconds(survey, fixed)
    cheapest = min(survey.passes, key=lambda cost: _expected(survey, cost, _least_passes(survey, fixed), fixed)[0])
    parts = (("reading and survey", spent), *_parts(survey, cheapest, fixed))
    listed = ", ".join(f"{name} {spoken(value)}" for name, value in parts if value >= 0.05)
    paired = sum(survey.stages.get(stage, 0.0) for stage in ("entity space", "matching"))
    without = (
        " Most of it finds counterfactual pairs: --set objective.alpha=0 --set objective.beta=0 does without them."
    )
    return (
        f"A time of {spoken(seconds)} is too little for this graph on this machine: the least is about "
        f"{spoken(least)} ({listed}; with {cheapest.layers} layers and {cheapest.negatives} negatives). Nothing was "
        f"written. Give more, for example --time {math.ceil(least * 1.2)}s, or --time none for no limit."
        f"{without if paired > least / 2 else ''}"
    )


def _parts(survey: Survey, cost: PassCost, fixed: Fixed) -> Iterator[tuple[str, float]]:
    """What the least consists of."""
    passes = _least_passes(survey, fixed)
    ranking = survey.ranking(cost.layers)
    yield from survey.stages.items()
    yield f"{passes:,} passes", passes * cost.milliseconds / 1e3
    rest = _expected(survey, cost, passes, fixed)[0] - sum(survey.stages.values()) - passes * cost.milliseconds / 1e3
    yield "validation", rest - ranking * (survey.questions.calibration + survey.questions.test)
    yield "calibration", ranking * survey.questions.calibration
    yield "test", ranking * survey.questions.test


def _reason(survey: Survey, chosen: Choice, best: Choice, options: list[Choice]) -> str:
    """Why this one, against the nearest alternatives."""
    sweeps = chosen.passes / survey.sweep
    thinned = "" if chosen.fan_in is None else f", at most {chosen.fan_in} edges per update"
    what = (
        f"{chosen.layers} layers, {chosen.negatives} negatives{thinned}, {chosen.passes:,} passes ({sweeps:.2g} "
        f"{'of an epoch' if sweeps < 1 else 'epochs'})"
    )
    ends = f"about {spoken(chosen.seconds)} from here on"
    if chosen.budget is None:
        ends += ", after which the epochs are over"
    others = [option for option in options if option.layers != chosen.layers]
    if (chosen.layers, chosen.negatives, chosen.fan_in) != (best.layers, best.negatives, best.fan_in):
        why = (
            f"{best.layers} layers with {best.negatives} negatives promise less than {INDIFFERENT:.0%} more and take "
            f"{spoken(best.seconds)}"
        )
    elif others:
        second = max(others, key=lambda option: option.worth)
        why = (
            f"it promises {chosen.worth:.0%} of the best imaginable accuracy; {second.layers} layers with "
            f"{second.negatives} negatives and {second.passes:,} passes promise {second.worth:.0%}"
        )
    else:
        why = "no other depth was left to choose, or fits"
    return f"{what}; {ends}: {why}."
