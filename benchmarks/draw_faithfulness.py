"""Draw what paths carry: the score on them alone, and its drop without them, beside their rivals.

Run: python benchmarks/draw_faithfulness.py FILE.json ... --output curves.png   (files written by explanations.py)
A column for each file. Above: the mean logit on the paths alone. Below: its mean drop without them.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kgcf.figure_files import check_picture, save_picture

_WAYS = {"ours": "#b23a48", "shortest": "#2a6f97", "random": "#9aa5b1", "integrated": "#7c3aed", "gradient": "#c98a1b"}
_FIGURES = {"alone": "mean logit on the paths alone", "drop": "mean drop of the logit without them"}
_PART = "faithfulness, removal"


def draw(reports: list[dict[str, Any]]) -> Figure:
    """One column for each report."""
    figure = Figure(figsize=(4.6 * len(reports), 6.4), layout="constrained")
    axes = figure.subplots(2, len(reports), squeeze=False, sharex=True)
    for column, report in enumerate(reports):
        for row, (name, title) in enumerate(_FIGURES.items()):
            _draw_curves(axes[row, column], report[_PART]["points"], name)
            axes[row, 0].set_ylabel(title)
        axes[0, column].axhline(report[_PART]["logit"], color="0.6", linewidth=0.8, linestyle="--")
        split, triples = report["run"]["protocol"]["split"], report[_PART]["triples"]
        axes[0, column].set_title(f"{report['run']['dataset']}, {split}, {triples} triples", fontsize=10)
        axes[1, column].set_xlabel("number of paths")
        axes[1, column].set_xticks([point["paths"] for point in report[_PART]["points"]])
    axes[0, -1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _draw_curves(axes: Axes, points: list[dict[str, Any]], figure: str) -> None:
    counts = [point["paths"] for point in points]
    for name, colour in _WAYS.items():
        label = "explanation" if name == "ours" else name
        axes.plot(counts, [point[name][figure] for point in points], color=colour, marker=".", label=label)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Read the files, draw, say where."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    check_picture(arguments.output)
    save_picture(draw([json.loads(path.read_text(encoding="utf-8")) for path in arguments.files]), arguments.output)
    print(f"The picture is in {arguments.output}.")


if __name__ == "__main__":
    main()
