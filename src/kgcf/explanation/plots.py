"""The paths of an explanation as a picture for a paper or a slide."""

from collections import defaultdict
from pathlib import Path
from textwrap import wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kgcf.explanation.explanation import Explanation
from kgcf.explanation.named_paths import NamedEdge
from kgcf.figure_files import check_picture, drawable, without_glyph_warnings
from kgcf.storage import replacing

Place = tuple[float, float]
_COLORS = ("#1f6feb", "#c2410c", "#15803d", "#7c3aed", "#b45309", "#0e7490", "#be185d", "#4d7c0f")
_PAPER = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}


def draw_paths(explanation: Explanation, path: Path) -> None:
    """Write a PNG: every path is a lane, every triple an arrow in its own direction."""
    check_picture(path, (".png",))
    lanes = max(len(explanation.paths), 1)
    figure = Figure(figsize=(11, 1.6 + 1.0 * lanes), dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.88))
    axes.set_axis_off()
    names = _names(explanation)
    ends = (drawable(part.shown, math=False) for part in (explanation.head, explanation.relation, explanation.tail))
    question = "{} —{}→ {}".format(*ends)
    axes.set_title(f"{question}   probability {explanation.probability:.3f}", fontsize=11, loc="left", parse_math=False)
    places = place_entities(explanation)
    for edge, lane in _distinct_edges(explanation):
        _draw_edge(axes, edge, places, _COLORS[lane % len(_COLORS)])
    for label, (x, y) in places.items():
        axes.scatter([x], [y], s=90, color="#1c2330" if x in (0.0, 1.0) else "#94a3b8", zorder=3)
        name = "\n".join(wrap(drawable(names[label], math=False), 24))
        style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 8, "parse_math": False, "bbox": _PAPER}
        axes.annotate(name, (x, y), (0, -9), textcoords="offset points", **style)
    if not places:
        axes.text(0.5, 0.5, "no path", ha="center")
    axes.margins(0.12, 0.25)
    axes.invert_yaxis()
    with without_glyph_warnings(), replacing(path) as temporary:
        figure.savefig(temporary, format="png")


def place_entities(explanation: Explanation) -> dict[str, Place]:
    """(x, y) by label: the share of the way, and the mean of the lanes of the paths through an entity.

    Head and tail stand in the middle; entities of nearly the same column keep a distance.
    """
    ways, lanes = defaultdict[str, list[float]](list), defaultdict[str, list[int]](list)
    for lane, path in enumerate(explanation.paths):
        for i, entity in enumerate([path.edges[0].head, *(edge.tail for edge in path.edges)]):
            ways[entity.label].append(i / len(path.edges))
            lanes[entity.label].append(lane)
    middle = (len(explanation.paths) - 1) / 2
    columns = defaultdict[int, list[tuple[float, float, str]]](list)
    for label in ways:
        x = sum(ways[label]) / len(ways[label])
        y = middle if x in (0.0, 1.0) else sum(lanes[label]) / len(lanes[label])
        columns[round(8 * x)].append((y, x, label))
    places: dict[str, Place] = {}
    for column in columns.values():
        lowest = -1.0
        for y, x, label in sorted(column):
            lowest = max(y, lowest + 0.8)
            places[label] = (x, lowest)
    return places


def _distinct_edges(explanation: Explanation) -> list[tuple[NamedEdge, int]]:
    """Every triple once, with the first lane that travels it."""
    found: dict[tuple[str, str, str], tuple[NamedEdge, int]] = {}
    for lane, path in enumerate(explanation.paths):
        for edge in path.edges:
            head, tail = (edge.tail, edge.head) if edge.inverse else (edge.head, edge.tail)
            found.setdefault((head.label, edge.relation.label, tail.label), (edge, lane))
    return list(found.values())


def _draw_edge(axes: Axes, edge: NamedEdge, places: dict[str, Place], color: str) -> None:
    head, tail = (edge.tail, edge.head) if edge.inverse else (edge.head, edge.tail)
    (x1, y1), (x2, y2) = places[head.label], places[tail.label]
    arrow = {"arrowstyle": "-|>", "color": color, "shrinkA": 6, "shrinkB": 6, "linewidth": 1.4}
    axes.annotate("", (x2, y2), (x1, y1), arrowprops=arrow)
    share = 0.5 if edge.head.label != head.label else 0.42  # two arrows between a pair keep their labels apart
    axes.text(
        x1 + share * (x2 - x1),
        y1 + share * (y2 - y1),
        drawable(edge.relation.shown, math=False),
        fontsize=7,
        color="#475569",
        ha="center",
        va="center",
        parse_math=False,
        bbox=_PAPER,
    )


def _names(explanation: Explanation) -> dict[str, str]:
    entities = [entity for path in explanation.paths for edge in path.edges for entity in (edge.head, edge.tail)]
    return {entity.label: entity.shown for entity in entities}
