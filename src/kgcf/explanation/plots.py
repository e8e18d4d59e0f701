"""The paths of an explanation as a picture for a paper or a slide."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from kgcf.data.vocabulary import Named
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.named_paths import NamedEdge
from kgcf.explanation.palette import LIGHT, line_style
from kgcf.figure_files import check_picture, drawable, without_glyph_warnings
from kgcf.figure_fonts import MISSING, families_for, visible
from kgcf.storage import replacing

Point = tuple[float, float]
_PAPER = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
_WIDTH, _LENGTH, _LANE = 11.0, 7.6, 1.0  # inches: of the picture, from head to tail, between two paths
_STRAND, _RELATION = 0.05, 0.2  # inches between the lines of an edge, and between the edges of a pair, at their middle
_TAKEN = 0.18  # inches around an entity through which no line of others should run
_TEXT = 0.2  # inches from the middle of a text to that of the next one below


@dataclass(frozen=True)
class Shared:
    """A triple on the canvas: the entities in its own direction, and the lanes of the paths that travel it."""

    edge: NamedEdge
    lanes: tuple[int, ...]

    @property
    def ends(self) -> tuple[Named, Named]:
        """Head and tail of the triple."""
        return (self.edge.tail, self.edge.head) if self.edge.inverse else (self.edge.head, self.edge.tail)


def draw_paths(explanation: Explanation, path: Path) -> None:
    """Write a PNG: a line for every path, arrows in the direction of the triples, a legend that names the paths."""
    check_picture(path, (".png",))
    texts = _Texts(explanation)
    positions = arrange_entities(explanation)
    figure, axes = _canvas(max((y for _, y in positions.values()), default=0.0))
    figure.text(0.01, 1 - 0.12 / figure.get_figheight(), texts.question, fontsize=10, va="top", **texts.style)
    taken = list(positions.values())
    for bundle in _bundles(explanation):
        _draw_bundle(axes, bundle, positions, texts, taken)
    for label, (x, y) in positions.items():
        axes.scatter([x], [y], s=90, color="#1c2330" if x in (0.0, 1.0) else "#94a3b8", zorder=3)
        style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 8, "bbox": _PAPER, "zorder": 4, **texts.style}
        axes.annotate(texts.names[label], (x, y), (0, -9), textcoords="offset points", **style)
    if not positions:
        axes.text(0.5, 0.5, "no path", ha="center")
    _add_legend(figure, explanation)
    if texts.incomplete:
        note = f"{MISSING} stands for a character that no font of this machine has."
        figure.text(0.01, 0.02, note, fontsize=7, color="#5d6778", **texts.style)
    with without_glyph_warnings(), replacing(path) as temporary:
        figure.savefig(temporary, format="png")


def _canvas(lowest: float) -> tuple[Figure, Axes]:
    """A figure for entities from (0, 0) to (1, lowest), with room for the question above and the legend beside."""
    above, below = 0.9, 0.9  # inches
    height = above + _LANE * lowest + below
    figure = Figure(figsize=(_WIDTH, height), dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 0.86, 1.0))
    axes.set_axis_off()
    margin = (0.86 * _WIDTH / _LENGTH - 1) / 2
    axes.set_xlim(-margin, 1 + margin)
    axes.set_ylim(lowest + below / _LANE, -above / _LANE)
    return figure, axes


class _Texts:
    """Every text of the picture as it can be drawn, and the fonts for it."""

    def __init__(self, explanation: Explanation) -> None:
        e = explanation
        entities = [entity for path in e.paths for edge in path.edges for entity in (edge.head, edge.tail)]
        relations = [edge.relation for path in e.paths for edge in path.edges]
        self.names = {entity.label: "\n".join(wrap(_readable(entity, 54), 18)) for entity in entities}
        self.relations = {relation.label: _readable(relation, 24) for relation in relations}
        head, relation, tail = (_readable(part, 60) for part in (e.head, e.relation, e.tail))
        question = f"{head} —{relation}→ {tail}   probability {e.probability:.3f}"
        self.question = "\n".join(wrap(question, 105))
        texts = [self.question, *self.names.values(), *self.relations.values()]
        self.incomplete = any(MISSING in text for text in texts)
        self.style: dict[str, Any] = {"parse_math": False, "fontfamily": families_for(texts)}


def _readable(part: Named, length: int) -> str:
    return visible(drawable(part.shown, length, math=False))


def arrange_entities(explanation: Explanation) -> dict[str, Point]:
    """(x, y) by label: the share of the way, and the mean of the lanes of the paths through an entity.

    Head and tail stand in the middle, the uppermost at 0; entities of nearly the same column keep a distance.
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
    positions: dict[str, Point] = {}
    for column in columns.values():
        lowest = -1.0
        for y, x, label in sorted(column):
            lowest = max(y, lowest + 0.8)
            positions[label] = (x, lowest)
    first = min((y for _, y in positions.values()), default=0.0)
    return {label: (x, y - first) for label, (x, y) in positions.items()}


def _bundles(explanation: Explanation) -> list[list[Shared]]:
    """The triples on the paths with all lanes that travel them, by pair of entities."""
    lanes = defaultdict[tuple[str, str, str], list[int]](list)
    edges: dict[tuple[str, str, str], NamedEdge] = {}
    for lane, path in enumerate(explanation.paths):
        for edge in path.edges:
            head, tail = Shared(edge, ()).ends
            key = (head.label, edge.relation.label, tail.label)
            edges.setdefault(key, edge)
            lanes[key].append(lane)
    pairs = defaultdict[frozenset[str], list[Shared]](list)
    for (head_label, relation, tail_label), edge in edges.items():
        key = (head_label, relation, tail_label)
        pairs[frozenset((head_label, tail_label))].append(Shared(edge, tuple(lanes[key])))
    return list(pairs.values())


def _draw_bundle(
    axes: Axes, bundle: list[Shared], positions: dict[str, Point], texts: _Texts, taken: list[Point]
) -> None:
    """The lines between two entities, side by side: a strand for every path, the triples further apart.

    `taken` are the points at which something is written already; the names of these edges join them.
    """
    first, second = sorted(end.label for end in bundle[0].ends)
    others = [position for label, position in positions.items() if label not in (first, second)]
    width = sum(_STRAND * (len(shared.lanes) - 1) for shared in bundle) + _RELATION * (len(bundle) - 1)
    across = swerve(positions[first], positions[second], others) - width / 2
    for shared in bundle:
        for lane in shared.lanes:
            _draw_strand(axes, shared, lane, positions, across)
            across += _STRAND
        middle = across - _STRAND * (len(shared.lanes) + 1) / 2
        point = free_point(positions[first], positions[second], middle, taken)
        taken.append(point)
        _name_edge(axes, shared, point, texts)
        across += _RELATION - _STRAND


def _draw_strand(axes: Axes, shared: Shared, lane: int, positions: dict[str, Point], across: float) -> None:
    head, tail = (end.label for end in shared.ends)
    (x1, y1), (x2, y2) = _inches(positions[head]), _inches(positions[tail])
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
    bend = 2 * across / length * (1 if head < tail else -1)  # of the curve's control point, as a share of the length
    style = line_style(lane)
    arrow = {
        "arrowstyle": "-|>",
        "connectionstyle": f"arc3,rad={bend:.4f}",
        "color": LIGHT[style.color],
        "linestyle": style.dash,
        "linewidth": 1.5,
        "shrinkA": 6,
        "shrinkB": 6,
    }
    axes.annotate("", positions[tail], positions[head], arrowprops=arrow)


def _name_edge(axes: Axes, shared: Shared, position: Point, texts: _Texts) -> None:
    """The relation, and the numbers of the paths where several share the edge."""
    numbers = f" · {', '.join(str(lane + 1) for lane in shared.lanes)}" if len(shared.lanes) > 1 else ""
    text = f"{texts.relations[shared.edge.relation.label]}{numbers}"
    style: dict[str, Any] = {
        "fontsize": 7,
        "color": "#475569",
        "ha": "center",
        "va": "center",
        "bbox": _PAPER,
        "zorder": 3.5,
    }
    axes.text(position[0], position[1], text, **style, **texts.style)


def swerve(start: Point, end: Point, others: list[Point]) -> float:
    """By how many inches the lines between two entities bend to the side, so as not to run through a third.

    Upwards rather than downwards, for names stand below.
    """
    bends = (0.0, 0.25, -0.25, 0.4, -0.4, 0.6, -0.6)
    tried = sorted(bends, key=lambda bend: (abs(bend), _middle(start, end, bend)[1]))
    shares = [i / 10 for i in range(1, 10)]

    def room(bend: float) -> float:
        points = [_inches(_middle(start, end, 4 * share * (1 - share) * bend, share)) for share in shares]
        distances = [
            ((x - a) ** 2 + (y - b) ** 2) ** 0.5 for x, y in points for a, b in (_inches(other) for other in others)
        ]
        return min(distances, default=_WIDTH)

    return next((bend for bend in tried if room(bend) > _TAKEN), max(tried, key=room))


def free_point(start: Point, end: Point, across: float, taken: list[Point]) -> Point:
    """Where to name a line that bends by so many inches: at its middle, or beside it where something stands there."""
    shares = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)
    points = [_middle(start, end, 4 * share * (1 - share) * across, share) for share in shares]

    def room(point: Point) -> float:
        """The distance of the nearest text; texts are some four times as wide as high."""
        (x, y), others = _inches(point), [_inches(other) for other in taken]
        return min((max(abs(x - a) / 4, abs(y - b)) for a, b in others), default=_WIDTH)

    return next((point for point in points if room(point) > _TEXT), max(points, key=room))


def _middle(start: Point, end: Point, across: float, share: float = 0.5) -> Point:
    """The point at a share of the way from start to end, and inches to the side of it."""
    (x1, y1), (x2, y2) = _inches(start), _inches(end)
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
    x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
    return (x - across * (y2 - y1) / length) / (_LENGTH), (y + across * (x2 - x1) / length) / _LANE


def _inches(position: Point) -> Point:
    """A position as it lies on the picture."""
    return position[0] * _LENGTH, position[1] * _LANE


def _add_legend(figure: Figure, explanation: Explanation) -> None:
    """Which line is which path, and the probability without it."""
    if not explanation.paths:
        return
    styles = [line_style(lane) for lane in range(len(explanation.paths))]
    lines = [Line2D([], [], color=LIGHT[style.color], linestyle=style.dash, linewidth=2) for style in styles]
    effects = [path.effect for path in explanation.paths]
    names = [
        f"{number}" if effect is None else f"{number}  {effect.without.probability:.3f}"
        for number, effect in enumerate(effects, start=1)
    ]
    style: dict[str, Any] = {"fontsize": 8, "title_fontsize": 8, "frameon": False}
    figure.legend(lines, names, loc="center right", title="path, without it", **style)
