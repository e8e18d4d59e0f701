"""ECE, Brier score and log loss against loops; the plot is a picture."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgcf.cli.evaluation_tables import calibration_table
from kgcf.errors import SettingsError
from kgcf.prediction.calibration.fitting import METHODS, CalibrationReport
from kgcf.prediction.calibration.plots import plot_reliability
from kgcf.prediction.calibration.reliability import Reliability, measure

PAIRS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]) | st.floats(0, 1), st.booleans()),
    min_size=1,
    max_size=60,
)


def ece_oracle(pairs: list[tuple[float, bool]], bins: int) -> float:
    """Fill bins one answer at a time: full when it has its share and the next answer's probability differs."""
    ordered = sorted(pairs, key=lambda pair: pair[0])
    filled: list[list[tuple[float, bool]]] = [[]]
    limits = {b * len(ordered) // bins for b in range(1, bins)}
    due = False
    for place, pair in enumerate(ordered):
        due |= place in limits and place > 0
        if due and filled[-1][-1][0] != pair[0]:
            filled.append([])
            due = False
        filled[-1].append(pair)
    total = 0.0
    for found in filled:
        said = sum(p for p, _ in found) / len(found)
        true = sum(y for _, y in found) / len(found)
        total += len(found) / len(ordered) * abs(said - true)
    return total


@given(PAIRS, st.integers(1, 20))
def test_ece_equals_the_loop(pairs: list[tuple[float, bool]], bins: int) -> None:
    probabilities, labels = np.array([p for p, _ in pairs]), np.array([y for _, y in pairs])
    found = measure(probabilities, labels, bins)
    assert found.ece == pytest.approx(ece_oracle(pairs, bins), abs=1e-12)
    assert sum(b.count for b in found.bins) == len(pairs)
    assert len(found.bins) <= bins


@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_matter(pairs: list[tuple[float, bool]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (measure(np.array([p for p, _ in x]), np.array([y for _, y in x])) for x in (pairs, shuffled))
    assert first.ece == pytest.approx(second.ece, abs=1e-12)
    assert [b.count for b in first.bins] == [b.count for b in second.bins]


def test_bins_have_equal_mass_where_probabilities_differ() -> None:
    generator = np.random.default_rng(0)
    found = measure(generator.random(1507), generator.random(1507) < 0.5)
    assert len(found.bins) == 15
    assert {b.count for b in found.bins} <= {100, 101}


@given(PAIRS)
def test_brier_and_log_loss_equal_loops(pairs: list[tuple[float, bool]]) -> None:
    found = measure(np.array([p for p, _ in pairs]), np.array([y for _, y in pairs]))
    assert found.brier == pytest.approx(sum((p - y) ** 2 for p, y in pairs) / len(pairs))
    given_to_truth = [max(p if y else 1 - p, 1e-12) for p, y in pairs]
    assert found.log_loss == pytest.approx(-sum(map(math.log, given_to_truth)) / len(pairs), abs=1e-9)


def test_perfect_and_worst_probabilities() -> None:
    labels = np.array([True, False] * 20)
    assert measure(labels.astype(float), labels).ece == 0
    assert measure(1.0 - labels, labels).ece == 1
    assert measure(np.full(40, 0.5), labels).ece == 0


def report() -> CalibrationReport:
    generator = np.random.default_rng(0)
    labels = generator.random(300) < 0.3
    measured: dict[str, Reliability] = {
        "sigmoid": measure(generator.random(300), labels),
        **{method: measure(np.full(300, 0.3), labels) for method in METHODS},
    }
    return CalibrationReport("test", 30, 300, float(labels.mean()), 0, 0.0, measured)


@pytest.mark.parametrize(("name", "begin"), [("plot.png", b"\x89PNG"), ("plot.svg", b"<?xml")])
@pytest.mark.parametrize("method", ["sigmoid", *METHODS])
def test_the_plot_is_a_picture(tmp_path: Path, name: str, begin: bytes, method: str) -> None:
    plot_reliability(report(), method, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    assert first.startswith(begin)
    plot_reliability(report(), method, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"end the name in \.png or \.svg"):
        plot_reliability(report(), "platt", tmp_path / "plot.doc")


def test_the_table_shows_before_and_after() -> None:
    found = report()
    cells = [str(shown) for shown in calibration_table([("a run", "platt", found)]).rows[0]]
    before, after = found.reliability["sigmoid"], found.reliability["platt"]
    assert cells[:4] == ["a run", "test", "platt", "300"]
    assert cells[5] == f"{before.ece:.4f} → {after.ece:.4f}"
