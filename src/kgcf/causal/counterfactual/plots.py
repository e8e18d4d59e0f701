"""The diagnostics as one figure: the leak, the distances, the outcomes and the effects."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kgcf.causal.counterfactual.diagnostics import QUANTILES, Diagnostics, RelationDiagnostics
from kgcf.figure_files import drawable, save_picture

_NAME_LENGTH = 34
COLOURS = {"full": "#b23a48", "left out": "#2a6f97", "negatives": "#9aa5b1", "placebo": "#c9a227"}


def plot_diagnostics(diagnostics: Diagnostics, path: Path, relations: int = 15) -> None:
    """Write the figure as PNG or SVG, by the ending of the path; the most frequent relations are shown."""
    figure = Figure(figsize=(12, 8.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2)
    shown = [part for part in diagnostics.relations if part.matches.matched][:relations]
    _plot_shares(axes[0, 0], diagnostics)
    _plot_distances(axes[0, 1], diagnostics)
    _plot_outcomes(axes[1, 0], shown)
    _plot_effects(axes[1, 1], shown)
    figure.suptitle(f"{drawable(diagnostics.name)}: {diagnostics.method}, candidates {diagnostics.candidates}")
    save_picture(figure, path)


def _plot_shares(axes: Axes, diagnostics: Diagnostics) -> None:
    shares = diagnostics.shares
    rows = [
        ("train", shares.train, COLOURS["full"]),
        (f"train, {diagnostics.left_out}\nleft out", shares.train_left_out, COLOURS["left out"]),
        ("valid", shares.valid, COLOURS["left out"]),
        ("train negatives,\nedge left out", shares.train_negatives_left_out, COLOURS["negatives"]),
        ("valid negatives", shares.valid_negatives, COLOURS["negatives"]),
    ]
    known = [(name, value, colour) for name, value, colour in rows if value is not None]
    axes.bar([row[0] for row in known], [row[1] for row in known], color=[row[2] for row in known])
    axes.set_ylabel("share with T = 1")
    axes.set_title("The leak of a triple's own edge")
    axes.tick_params(axis="x", labelsize=7)


def _plot_distances(axes: Axes, diagnostics: Diagnostics) -> None:
    if diagnostics.matches.distances is not None:
        axes.plot(diagnostics.matches.distances, QUANTILES, color=COLOURS["left out"])
    axes.set_xlabel("distance to the substitute")
    axes.set_ylabel("share of matched triples")
    axes.set_title("Distances")


def _plot_outcomes(axes: Axes, shown: list[RelationDiagnostics]) -> None:
    positions = range(len(shown))
    untreated = [part.matches.outcome_untreated or 0.0 for part in shown]
    treated = [part.matches.outcome_treated or 0.0 for part in shown]
    axes.barh(
        [position + 0.2 for position in positions], untreated, height=0.4, color=COLOURS["negatives"], label="T^CF = 0"
    )
    axes.barh(
        [position - 0.2 for position in positions], treated, height=0.4, color=COLOURS["left out"], label="T^CF = 1"
    )
    _name_rows(axes, shown)
    axes.set_xlabel("share of substitutes that are known triples")
    axes.set_title("P(A^CF = 1 | T^CF)")
    axes.legend(fontsize=7)


def _plot_effects(axes: Axes, shown: list[RelationDiagnostics]) -> None:
    kinds = (("effect", 0.0, "left out"), ("shuffled_treatment", 0.25, "placebo"), ("permuted_labels", -0.25, "full"))
    for kind, shift, colour in kinds:
        rows = [(position, getattr(part.effects, kind)) for position, part in enumerate(shown)]
        known = [(position, effect) for position, effect in rows if effect.estimate is not None]
        axes.errorbar(
            [effect.estimate for _, effect in known],
            [position + shift for position, _ in known],
            xerr=[3 * (effect.standard_error or 0.0) for _, effect in known],
            fmt="o",
            markersize=3,
            color=COLOURS[colour],
            label=kind.replace("_", " "),
        )
    axes.axvline(0, color="black", linewidth=0.5)
    _name_rows(axes, shown)
    axes.set_xlabel("average treatment effect ± 3 standard errors")
    axes.set_title("Effects and placebos")
    axes.legend(fontsize=7)


def _name_rows(axes: Axes, shown: list[RelationDiagnostics]) -> None:
    axes.set_yticks(range(len(shown)), [drawable(part.name, _NAME_LENGTH, keep="end") for part in shown], fontsize=6)
    axes.invert_yaxis()
