"""Times as people write them: `90s`, `30m`, `2h`, a number of seconds, `none`, `auto`; and as they read them."""

import math
import re

from kgcf.errors import SettingsError

NONE = "none"  # no limit
AUTO = "auto"  # what suits the data
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_FEW_MINUTES = 600  # seconds: below, half a minute makes a difference
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(s|m|h)?")
_ADVICE = "Write 90s, 30m or 2h, a number of seconds, none for no limit, or auto"


def is_auto(value: str | float | None) -> bool:
    """Whether a time is left to the data."""
    return isinstance(value, str) and value.strip().lower() == AUTO


def read_duration(value: str | float | None) -> float | None:
    """Seconds; None for `none`. What is no time, and none that passes, is refused with a sentence."""
    if value is None or (isinstance(value, str) and value.strip().lower() == NONE):
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise SettingsError(f"{value!r} is no time. {_ADVICE}.")
    seconds = _seconds_of(value)
    if not math.isfinite(seconds) or seconds <= 0:
        raise SettingsError(f"A time of {value} is no time to train in. {_ADVICE}.")
    return seconds


def _seconds_of(value: str | float) -> float:
    if not isinstance(value, str):
        return float(value)
    text = value.strip().lower()
    found = _WRITTEN.fullmatch(text.removeprefix("-").strip())
    if found is None:
        raise SettingsError(f"'{value}' is no time. {_ADVICE}.")
    seconds = float(found[1]) * _UNITS[found[2] or "s"]
    return -seconds if text.startswith("-") else seconds


def spoken(seconds: float) -> str:
    """A time for people: `0.4 s`, `45 s`, `1 min 40 s`, `12 min`, `3 h 20 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < _FEW_MINUTES:
        whole, rest = divmod(round(seconds), 60)
        return f"{whole} min {rest} s" if rest else f"{whole} min"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
