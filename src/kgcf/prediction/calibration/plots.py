"""The reliability plot of a calibration."""

from pathlib import Path
from typing import TYPE_CHECKING

from kgcf.figure_files import check_picture, save_picture
from kgcf.prediction.calibration.fitting import CalibrationReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"sigmoid": "#b0482a", "platt": "#1f6f8b", "isotonic": "#3d7d3a", "relation": "#6b4fa0"}


def plot_reliability(report: CalibrationReport, method: str, path: Path) -> None:
    """Draw said against true, before and after, as PNG or SVG; circles have the area of the bins' answers."""
    check_picture(path)
    from matplotlib.figure import Figure

    shown = ["sigmoid"] if method == "sigmoid" else ["sigmoid", method]
    figure = Figure(figsize=(4.2 * len(shown), 4.2), layout="constrained")
    for column, name in enumerate(shown, start=1):
        _draw(figure.add_subplot(1, len(shown), column), report, name, "before" if name == "sigmoid" else "after")
    facts = f"{report.split}: {report.answers:,} answers to {report.questions:,} questions"
    figure.suptitle(f"{facts}, base rate {report.base_rate:.3f}", fontsize=9)
    save_picture(figure, path)


def _draw(axes: "Axes", report: CalibrationReport, name: str, when: str) -> None:
    measured = report.reliability[name]
    stated = [b.probability for b in measured.bins]
    true = [b.rate for b in measured.bins]
    areas = [max(4.0, 900 * b.count / report.answers) for b in measured.bins]
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle="--", label="what is said is true")
    axes.axhline(report.base_rate, color="0.8", linewidth=0.8, label="base rate")
    axes.plot(stated, true, color=_COLOURS[name], linewidth=1.0)
    axes.scatter(stated, true, s=areas, color=_COLOURS[name], alpha=0.5, linewidths=0)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    axes.set_xlabel("mean probability of a bin")
    axes.set_ylabel("share of true answers")
    axes.set_title(f"{when}: {name}\nECE {measured.ece:.4f}, Brier {measured.brier:.4f}", fontsize=9)
    axes.legend(loc="upper left", fontsize=7, frameon=False)
