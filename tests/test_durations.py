"""Times as people write and read them."""

import pytest

from kgcf.durations import read_duration, spoken
from kgcf.errors import SettingsError


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), (" 1.5 H ", 5400), ("45", 45), (12.5, 12.5), (3, 3), (".5m", 30)],
)
def test_times_are_read(written: str | float, seconds: float) -> None:
    assert read_duration(written) == seconds


@pytest.mark.parametrize("written", ["none", "None", None])
def test_none_is_no_limit(written: str | None) -> None:
    assert read_duration(written) is None


@pytest.mark.parametrize("written", ["abc", "", "1d", "m", "5 m 3 s", "--5s", True, [3], "auto"])
def test_what_is_no_time_is_refused(written: object) -> None:
    with pytest.raises(SettingsError, match="is no time. Write 90s, 30m or 2h"):
        read_duration(written)  # type: ignore[arg-type]


@pytest.mark.parametrize("written", ["0", "0s", "-5s", "-1", 0, -3.0, float("nan"), float("inf")])
def test_no_time_passes_in_these(written: str | float) -> None:
    with pytest.raises(SettingsError, match="is no time to train in. Write 90s"):
        read_duration(written)


def test_times_are_spoken() -> None:
    assert [spoken(s) for s in (0.44, 45.2, 720, 12_000)] == ["0.4 s", "45 s", "12 min", "3 h 20 min"]
    assert [spoken(s) for s in (100, 119.6, 120, 599.9)] == ["1 min 40 s", "2 min", "2 min", "10 min"]
