"""Pictures of a run as numbers for SVG: axes, lines and points, drawn by a template without any script."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kgcf.web.models import Curve

WIDTH, HEIGHT = 560.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 16.0, 28.0, 38.0


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float  # pixels
    text: str


@dataclass(frozen=True)
class Line:
    """A curve in pixels."""

    title: str
    path: str  # the points of a polyline
    points: tuple[tuple[float, float, float], ...]  # x, y, radius


@dataclass(frozen=True)
class Chart:
    """A drawn chart."""

    title: str
    x_title: str
    y_title: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    lines: tuple[Line, ...]
    diagonal: str = ""  # the points of the line on which what is said is true
    width: float = WIDTH
    height: float = HEIGHT


def draw(
    title: str,
    curves: Sequence[Curve],
    titles: tuple[str, str],
    spans: tuple[tuple[float, float], tuple[float, float]] | None = None,
    diagonal: bool = False,
) -> Chart | None:
    """Curves on common axes; None where there is no point."""
    points = [point for curve in curves for point in curve.points]
    if not points:
        return None
    (x_low, x_high), (y_low, y_high) = spans or (_span([x for x, _ in points]), _span([y for _, y in points]))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - x_low) / (x_high - x_low) * (WIDTH - _LEFT - _RIGHT)
        up = (y - y_low) / (y_high - y_low) * (HEIGHT - _TOP - _BOTTOM)
        return round(_LEFT + across, 1), round(HEIGHT - _BOTTOM - up, 1)

    return Chart(
        title,
        *titles,
        across=tuple(Tick(place(value, y_low)[0], f"{value:g}") for value in _ticks(x_low, x_high, spans is None)),
        up=tuple(Tick(place(x_low, value)[1], f"{value:g}") for value in _ticks(y_low, y_high)),
        lines=tuple(_line(curve, [place(*point) for point in curve.points]) for curve in curves),
        diagonal="{:g},{:g} {:g},{:g}".format(*place(x_low, y_low), *place(x_high, y_high)) if diagonal else "",
    )


def _line(curve: Curve, places: Sequence[tuple[float, float]]) -> Line:
    largest = max(curve.sizes, default=1.0) or 1.0
    radii = [2 + 5 * math.sqrt(size / largest) for size in curve.sizes] or [3.0] * len(places)
    path = " ".join(f"{x:g},{y:g}" for x, y in places)
    points = tuple((x, y, round(radius, 1)) for (x, y), radius in zip(places, radii, strict=True))
    return Line(curve.title, path, points)


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    spare = 0.08 * (high - low) or 0.5
    return low - spare, high + spare


def _ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """Five round numbers or so between the ends of an axis."""
    rough = (high - low) / 4
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * scale for factor in (1, 2, 5, 10) if factor * scale >= rough * 0.99)
    if whole:
        step = max(1.0, round(step))
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]
