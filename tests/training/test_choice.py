"""The rule that chooses depth, negatives and passes for a time: a pure function of a survey."""

from dataclasses import replace
from typing import Any

import pytest

from kgcf.training import choice as rule
from kgcf.training.choice import Choice, Fixed, TimeError, choose, least_seconds, list_options, worth
from kgcf.training.cost_model import Work
from kgcf.training.survey import PassCost, Questions, RankCost, Survey
from kgcf.training.survey_table import survey_table

# Of FB15k-237 and WN18RR on two cores: milliseconds of a pass with 32 negatives by layers, and of a ranking.
DENSE = {2: (0.8, 2.0), 3: (2.2, 8.0), 4: (15.0, 20.0), 5: (50.0, 45.0), 6: (100.0, 70.0), 7: (160.0, 100.0)}
SPARSE = {2: (0.3, 0.4), 3: (0.4, 0.6), 4: (0.6, 1.5), 5: (0.8, 3.0), 6: (1.2, 6.0), 7: (3.0, 12.0), 8: (7.0, 20.0)}
REACH = {"dense": (0.0, 0.7, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), "sparse": (0.35, 0.42, 0.64, 0.71, 0.79, 0.84, 0.85, 0.87)}
EPOCHS = Fixed(epochs=20)
MINUTE = 60.0


def survey(kind: str, negatives: tuple[int, ...] = (32, 128), sweep: int = 100_000, **changes: Any) -> Survey:
    """A survey of a graph of this kind; four times the negatives cost twice as much."""
    times = DENSE if kind == "dense" else SPARSE
    passes = tuple(
        PassCost(layers, count, Work(1e3, 1e4), ms * (count / 32) ** 0.5, 1, True)
        for layers, (ms, _) in times.items()
        for count in negatives
    )
    ranks = tuple(RankCost(layers, Work(1e4, 1e5), ms, True) for layers, (_, ms) in times.items())
    made = Survey(REACH[kind], passes, ranks, Questions(2000, 1000, 3000, 5000), sweep, 32, {"matching": 10.0}, 2.0)
    return replace(made, **changes)


def size(chosen: Choice) -> tuple[int, int]:
    return chosen.layers, chosen.negatives


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_choice_ends_in_time_and_more_time_never_promises_less(kind: str) -> None:
    before, found = 0.0, survey(kind)
    for minutes in (3, 5, 10, 30, 60, 240, 1000):
        chosen = choose(found, minutes * MINUTE, EPOCHS)
        assert chosen.seconds <= rule.usable_seconds(minutes * MINUTE) < minutes * MINUTE * (1 - rule.RESERVE)
        assert chosen.worth >= before * (1 - rule.INDIFFERENT)
        before = chosen.worth


def test_a_fifth_is_kept_back_of_a_short_time_and_little_more_than_a_tenth_of_a_long_one() -> None:
    kept = {seconds: seconds - rule.usable_seconds(seconds) for seconds in (20.0, 100.0, 120.0, 1800.0)}
    assert kept == pytest.approx({20.0: 4.0, 100.0: 20.0, 120.0: 22.0, 1800.0: 190.0})


@pytest.mark.parametrize("matching", [1.0, 200.0])
def test_with_the_least_time_something_fits_and_with_a_little_less_nothing(matching: float) -> None:
    found = survey("sparse", stages={"matching": matching})
    least = least_seconds(found, EPOCHS)
    assert (least < rule.SHORT) is (matching < 10)  # both sides of where less is kept back
    assert list_options(found, least * 1.001, EPOCHS)
    assert not list_options(found, least * 0.999, EPOCHS)


def test_passes_come_first_then_depth_then_negatives() -> None:
    """A dense graph gets three layers in minutes, four in an hour, more in a day; a sparse one its six at once."""
    found = [choose(survey("dense"), minutes * MINUTE, EPOCHS) for minutes in (3, 10, 60, 1440)]
    assert found[0].layers <= found[1].layers == 3 < found[2].layers == 4 < found[3].layers
    assert found[0].passes >= 20_000
    assert found[3].negatives == 128
    assert choose(survey("sparse"), 10 * MINUTE, EPOCHS).layers == 6


def test_the_choice_is_the_best_or_cheaper_and_as_good() -> None:
    found = survey("sparse", sweep=5000)
    chosen = choose(found, 600 * MINUTE, EPOCHS)
    full = [worth(found.reached(c.layers), c.layers, c.negatives, 20 * 5000) for c in found.passes]
    assert max(full) * (1 - rule.INDIFFERENT) <= chosen.worth < max(full)
    assert chosen.layers < 8
    assert "promise less than 1% more" in chosen.reason


def test_a_depth_that_reaches_nothing_is_not_chosen() -> None:
    found = survey("sparse", reach=(0.0, 0.0, 0.0, 0.0, 0.8, 0.8, 0.8, 0.8))
    assert choose(found, 10 * MINUTE, EPOCHS).layers >= 5


def test_epochs_are_the_most_and_then_nothing_is_cut() -> None:
    chosen = choose(survey("sparse", sweep=2000), 300 * MINUTE, Fixed(epochs=3))
    assert chosen.passes == 6000
    assert chosen.budget is None
    assert "the epochs are over" in chosen.reason
    cut = choose(survey("sparse"), 10 * MINUTE, EPOCHS)
    assert cut.budget == cut.passes < 20 * 100_000
    assert cut.passes % 32 == 0


def test_the_budget_of_a_preset_is_the_most_and_that_of_the_user_is_kept() -> None:
    found = survey("sparse")
    assert choose(found, 300 * MINUTE, Fixed(20, budget=20_000)).budget == 20_000
    less = choose(survey("dense"), 3 * MINUTE, Fixed(20, budget=20_000))
    assert less.passes == 20_000 or less.passes < 20_000
    kept = choose(found, 30 * MINUTE, Fixed(20, budget=400_000, exact=True))
    assert kept.budget == 400_000
    with pytest.raises(TimeError, match="400,000 passes"):
        choose(survey("dense"), 3 * MINUTE, Fixed(20, budget=400_000, exact=True))


def test_a_validation_is_cut_where_it_would_take_too_much() -> None:
    many = Questions(valid=30_000, valid_triples=17_000, calibration=3000, test=5000)
    chosen = choose(survey("dense", questions=many), 30 * MINUTE, EPOCHS)
    assert chosen.validate_triples is not None
    assert rule.LEAST_VALIDATED <= chosen.validate_triples < 17_000
    assert choose(survey("dense", questions=many), 30 * MINUTE, Fixed(20, validate_triples=300)).validate_triples == 300
    assert choose(survey("dense"), 30 * MINUTE, EPOCHS).validate_triples is None


def test_too_little_time_is_said_with_the_least_that_suffices() -> None:
    found = survey("dense")
    least = least_seconds(found, EPOCHS)
    with pytest.raises(TimeError, match=r"A time of 5.0 s is too little .* the least is about .*--time \d+s"):
        choose(found, 5.0, EPOCHS)
    with pytest.raises(TimeError, match="reading and survey 20 s"):
        choose(found, least + 10, EPOCHS, spent=20.0)
    chosen = choose(found, least + 0.01, EPOCHS)
    assert chosen.passes >= rule.LEAST_STEPS * 32
    assert choose(found, least + 20.01, EPOCHS, spent=20.0) == chosen


def test_what_is_spent_is_not_spent_again() -> None:
    found = survey("dense")
    assert choose(found, 700.0, EPOCHS, spent=100.0) == choose(found, 600.0, EPOCHS)


@pytest.mark.parametrize(
    ("name", "value", "changed"),
    [("HALF_LEARNED", 10, 1), ("SHALLOW", 0.9, 1), ("REACH_POWER", 9.0, -1), ("HALF_NEGATIVES", 30, 0)],
)
def test_every_constant_of_the_rule_decides_something(
    name: str, value: float, changed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, times = survey("dense"), [minutes * MINUTE for minutes in (3, 5, 10, 20, 40, 80, 160)]
    if changed < 0:
        found = replace(found, reach=(0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0))
    before = [size(choose(found, seconds, EPOCHS)) for seconds in times]
    monkeypatch.setattr(rule, name, value)
    assert [size(choose(found, seconds, EPOCHS)) for seconds in times] != before


def test_a_survey_is_stored_and_shown() -> None:
    found = survey("sparse")
    assert Survey.from_json(found.to_json()) == found
    chosen = choose(found, 10 * MINUTE, EPOCHS)
    head, *lines = survey_table(found, list_options(found, 10 * MINUTE, EPOCHS), chosen).splitlines()
    assert head.split()[:2] == ["layers", "negatives"]
    assert [line.split()[-9] for line in lines] == [str(layers) for layers in SPARSE]
    (marked,) = (line.split() for line in lines if "→" in line)
    assert marked[1:4] == [str(chosen.layers), str(chosen.negatives), "84%"]
    assert marked[-2:] == [f"{chosen.passes:,}", f"{chosen.worth:.2f}"]


def test_a_depth_that_does_not_fit_is_shown_as_such() -> None:
    found = survey("dense")
    chosen = choose(found, 3 * MINUTE, EPOCHS)
    lines = survey_table(found, list_options(found, 3 * MINUTE, EPOCHS), chosen).splitlines()
    assert lines[-1].endswith("too few")


def thinned(found: Survey) -> Survey:
    """The same with a fan-in that takes a fifth of the time."""
    more = (replace(cost, fan_in=rule.FAN_IN, milliseconds=cost.milliseconds / 5) for cost in found.passes)
    return replace(found, passes=(*found.passes, *more))


def test_a_fan_in_is_chosen_where_passes_are_few_and_not_where_there_are_plenty() -> None:
    found = thinned(survey("dense", negatives=(128,), reach=(0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0)))
    hasty, patient = (choose(found, minutes * MINUTE, EPOCHS) for minutes in (10, 24 * 60))
    assert (hasty.fan_in, patient.fan_in) == (rule.FAN_IN, None)
    assert "128 negatives, at most 64 edges per update, " in hasty.reason
    assert "edges" not in patient.reason
    assert hasty.worth == worth(1.0, hasty.layers, 128, hasty.passes) * rule.THINNED


def test_the_table_shows_the_fan_in_that_was_chosen_from_two() -> None:
    found = thinned(survey("dense", negatives=(128,)))
    chosen = choose(found, 10 * MINUTE, EPOCHS)
    head, *lines = survey_table(found, list_options(found, 10 * MINUTE, EPOCHS), chosen).splitlines()
    assert "negatives  fan-in" in head
    (marked,) = (line.split() for line in lines if "→" in line)
    assert marked[3] == ("all" if chosen.fan_in is None else "64")
    cost = next(c for c in found.passes if (c.layers, c.fan_in) == (chosen.layers, chosen.fan_in))
    assert f"{cost.milliseconds:.1f}"[:3] in " ".join(marked)
    bare = survey("dense")
    options = list_options(bare, 10 * MINUTE, EPOCHS)
    assert "fan-in" not in survey_table(bare, options, choose(bare, 10 * MINUTE, EPOCHS))


def test_a_refusal_says_what_would_do_without_the_longest_stage() -> None:
    slow = survey("dense", stages={"entity space": 600.0, "matching": 20_000.0})
    with pytest.raises(TimeError, match=r"--set objective.alpha=0 --set objective.beta=0 does without them"):
        choose(slow, 10 * MINUTE, EPOCHS)
    with pytest.raises(TimeError) as error:
        choose(survey("dense"), 5.0, EPOCHS)
    assert "counterfactual" not in str(error.value)
