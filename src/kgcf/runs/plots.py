"""Learning curves of runs as a picture: validation MRR by epoch and by time."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kgcf.errors import SettingsError
from kgcf.figure_files import check_picture, drawable, save_picture
from kgcf.runs.comparison import RunRecord

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777")


def draw_learning(records: Sequence[RunRecord], path: Path) -> None:
    """Draw validation MRR by epoch and by time, one line for each run, the kept model marked."""
    check_picture(path)
    save_picture(learning_figure(records), path)


def learning_figure(records: Sequence[RunRecord]) -> Figure:
    """Validation MRR by epoch and by minutes; runs without validation are refused, for they have nothing to show."""
    silent = [record.name for record in records if not record.validation]
    if silent:
        raise SettingsError(f"{', '.join(silent)}: no epoch was validated, so there is no curve to draw.")
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    by_epoch, by_time = figure.subplots(1, 2, sharey=True)
    for index, record in enumerate(records):
        epochs, scores = zip(*record.validation, strict=True)
        _draw(by_epoch, record, epochs, scores, _COLOURS[index % len(_COLOURS)])
        _draw(by_time, record, record.validation_minutes, scores, _COLOURS[index % len(_COLOURS)])
    datasets = sorted({record.dataset for record in records})
    by_epoch.set_title(f"Validation MRR: {drawable(', '.join(datasets))}", loc="left")
    by_epoch.set_ylabel("filtered MRR, realistic ties")
    by_epoch.set_xlabel("epoch (circle: the model that is kept)")
    by_epoch.xaxis.set_major_locator(MaxNLocator(integer=True))
    by_time.set_xlabel("minutes of training and validation")
    by_time.set_xlim(left=0)
    figure.legend(*by_time.get_legend_handles_labels(), frameon=False, loc="outside lower center")
    for axes in (by_epoch, by_time):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
    return figure


def _draw(axes: Axes, record: RunRecord, times: Sequence[float], scores: Sequence[float], colour: str) -> None:
    axes.plot(times, scores, color=colour, marker=".", label=_legend(record))
    best = max(range(len(scores)), key=lambda place: scores[place])
    axes.plot(times[best], scores[best], color=colour, marker="o", markersize=8, fillstyle="none")


def _legend(record: RunRecord) -> str:
    tested = f", test {record.test['mrr']:.4f}" if record.test else ""
    return f"{drawable(record.name)} ({record.preset}, seed {record.settings.training.seed}){tested}"
