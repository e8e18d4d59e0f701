"""The plots of the report; the same numbers give the same bytes."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from kgcf.figure_files import drawable, save_picture

_BLUE, _RED, _GREY = "#4477aa", "#ee6677", "#777777"
_DOT = 30.0  # area of a dot in a legend
_BRIGHT = 0.6  # from here on viridis is too bright for white letters


def draw_distribution(dataset: str, relations: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Share of every relation in train and test, by its rank in train."""
    rows = sorted(relations.values(), key=lambda row: -int(row["train"]))
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.add_subplot()
    places = range(1, len(rows) + 1)
    for split, colour in (("train", _BLUE), ("test", _RED)):
        total = max(sum(int(row[split]) for row in rows), 1)
        axes.plot(places, [int(row[split]) / total for row in rows], ".", color=colour, label=split, markersize=4)
    axes.set_yscale("log")
    axes.set_title(f"Share of every relation: {drawable(dataset)}", loc="left")
    axes.set_xlabel("relation, the most frequent in train first")
    axes.set_ylabel("share of the triples")
    axes.legend(frameon=False)
    _finish(figure, axes, path)


def draw_weights(dataset: str, variant: str, values: Mapping[tuple[float, float], float], path: Path) -> None:
    """A heat map: α downwards, β to the right."""
    alphas, betas = (sorted({place[i] for place in values}) for i in (0, 1))
    figure = Figure(figsize=(4.6, 3.8), layout="constrained")
    axes = figure.add_subplot()
    table = [[values.get((alpha, beta), float("nan")) for beta in betas] for alpha in alphas]
    low, high = min(values.values()), max(values.values())
    axes.set_facecolor("#dddddd")  # where nothing is computed yet
    axes.imshow(table, cmap="viridis", aspect="auto")
    for row, line in enumerate(table):
        for column, value in enumerate(line):
            if math.isnan(value):
                axes.text(column, row, "open", ha="center", va="center", color=_GREY, fontsize=8)
                continue
            colour = "black" if value > low + _BRIGHT * (high - low) else "white"
            axes.text(column, row, f"{value:.3f}", ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(betas)), [f"{beta:g}" for beta in betas])
    axes.set_yticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas])
    axes.set_xlabel("β")
    axes.set_ylabel("α")
    axes.set_title(f"Test H@10, one seed: {drawable(dataset)}\n{variant}", loc="left", fontsize=11)
    save_picture(figure, path)


def draw_gains(points: Mapping[str, Sequence[tuple[int, float, float]]], path: Path) -> None:
    """Gain in MRR of every relation by its train triples; the area of a dot is its number of questions."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for index, (dataset, rows) in enumerate(points.items()):
        train, gains, questions = zip(*rows, strict=True)
        sizes = [12 + 3 * count**0.5 for count in questions]
        axes.scatter(train, gains, s=sizes, alpha=0.5, color=f"C{index}", label=drawable(dataset), linewidths=0)
    axes.axhline(0, color=_GREY, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_title("Gain of KGCF (default, paths alone), relation by relation", loc="left")
    axes.set_xlabel("train triples of the relation")
    axes.set_ylabel("ΔMRR")
    legend: Any = axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))  # beside the dots, not on them
    for dot in legend.legend_handles:
        dot.set_sizes([_DOT])
    _finish(figure, axes, path)


def _finish(figure: Figure, axes: Any, path: Path) -> None:  # noqa: ANN401
    axes.spines[["top", "right"]].set_visible(False)
    save_picture(figure, path)
