"""Draw deletion curves: how far the logit falls without the best, random and shortest paths.

Run: python benchmarks/draw_deletion.py FILE.json ... --output curves.svg   (files written by explanations.py)
Above: mean drops. Below: top − random with its 95 % interval, which must not contain 0.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kgcf.figure_files import check_picture, save_picture

_KINDS = {"top": "#b23a48", "random": "#9aa5b1", "shortest": "#2a6f97"}


def draw(reports: list[dict[str, Any]]) -> Figure:
    """One column for each report."""
    figure = Figure(figsize=(4.6 * len(reports), 5.4), layout="constrained")
    axes = figure.subplots(2, len(reports), squeeze=False, sharex=True, height_ratios=(3, 2))
    for column, report in enumerate(reports):
        rule, curve = next(iter(report["deletion"].items()))
        _draw_drops(axes[0, column], curve["points"])
        _draw_differences(axes[1, column], curve["points"])
        split = report["protocol"]["split"]
        axes[0, column].set_title(f"{report['dataset']}, {split}, {curve['triples']} triples, {rule}", fontsize=10)
    axes[0, 0].set_ylabel("mean drop of the logit")
    axes[1, 0].set_ylabel("top − random")
    return figure


def _draw_drops(axes: Axes, points: list[dict[str, Any]]) -> None:
    for kind, colour in _KINDS.items():
        axes.plot(_counts(points), [p[f"{kind}_drop"] for p in points], color=colour, marker=".", label=kind)
    axes.legend(frameon=False, title="paths removed")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_differences(axes: Axes, points: list[dict[str, Any]]) -> None:
    middle, low, high = zip(*(p["top_minus_random"] for p in points), strict=True)
    errors = [[m - a for m, a in zip(middle, low, strict=True)], [b - m for m, b in zip(middle, high, strict=True)]]
    axes.errorbar(_counts(points), middle, yerr=errors, color=_KINDS["top"], marker="o", markersize=4, capsize=3)
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.set_xlabel("number of paths removed")
    axes.spines[["top", "right"]].set_visible(False)


def _counts(points: list[dict[str, Any]]) -> list[int]:
    return [point["paths"] for point in points]


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
