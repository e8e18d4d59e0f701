"""Learning curves of runs as a picture: validation MRR by epoch."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kgcf.errors import SettingsError
from kgcf.figure_files import check_picture, drawable, save_picture
from kgcf.runs.comparison import RunRecord

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777")


def draw_learning(records: Sequence[RunRecord], path: Path) -> None:
    """Draw validation MRR by epoch, one line for each run, the kept model marked."""
    check_picture(path)
    save_picture(learning_figure(records), path)


def learning_figure(records: Sequence[RunRecord]) -> Figure:
    """Validation MRR by epoch; runs without validation are refused, for they have nothing to show."""
    silent = [record.name for record in records if not record.validation]
    if silent:
        raise SettingsError(f"{', '.join(silent)}: no epoch was validated, so there is no curve to draw.")
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for index, record in enumerate(records):
        colour = _COLOURS[index % len(_COLOURS)]
        epochs, scores = zip(*record.validation, strict=True)
        axes.plot(epochs, scores, color=colour, marker=".", label=_legend(record))
        best = record.best
        assert best is not None
        axes.plot(*best, color=colour, marker="o", markersize=8, fillstyle="none")
    datasets = sorted({record.dataset for record in records})
    axes.set_title(f"Validation MRR by epoch: {drawable(', '.join(datasets))}", loc="left")
    axes.set_xlabel("epoch (circle: the model that is kept)")
    axes.set_ylabel("filtered MRR, realistic ties")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    return figure


def _legend(record: RunRecord) -> str:
    tested = f", test {record.test['mrr']:.4f}" if record.test else ""
    return f"{drawable(record.name)} ({record.preset}, seed {record.settings.training.seed}){tested}"
