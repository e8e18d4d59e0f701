"""The relation distribution of train and test as a picture (the paper's figure 2)."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from kgcf.data.statistics import DatasetFacts
from kgcf.figure_files import check_picture, drawable, save_picture

TRAIN_COLOUR, TEST_COLOUR = "#4477aa", "#ee6677"
NAMED_RELATIONS = 30  # up to here every relation has a bar and its name
_NAME_LENGTH = 48

Shares = NDArray[np.float64]


def draw_relations(facts: DatasetFacts, path: Path) -> None:
    """Draw the share of every relation among the triples of train and test, by falling share in train."""
    check_picture(path)
    save_picture(relation_figure(facts), path)


def relation_figure(facts: DatasetFacts) -> Figure:
    """Bars with names where the relations are few, shares by rank on a logarithmic scale where they are many."""
    order = sorted(range(len(facts.per_relation)), key=lambda r: (-facts.per_relation[r].train, r))
    ordered = [facts.per_relation[r] for r in order]
    train = _shares([relation.train for relation in ordered])
    test = _shares([relation.test for relation in ordered])
    few = len(ordered) <= NAMED_RELATIONS
    figure = Figure(figsize=(8, 1.4 + 0.32 * len(ordered)) if few else (9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    titles = (f"train ({facts.train:,} triples)", f"test ({facts.test:,} triples)")
    if few:
        marks = _draw_bars(axes, [drawable(r.name, _NAME_LENGTH, keep="end") for r in ordered], train, test, titles)
    else:
        marks = _draw_ranks(axes, train, test, titles)
    axes.set_title(f"Relations of {drawable(facts.name)}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right" if few else "upper right", handles=marks)
    return figure


def _draw_bars(axes: Axes, names: list[str], train: Shares, test: Shares, titles: tuple[str, str]) -> list[Any]:
    rows = np.arange(len(names))
    seen = axes.barh(rows - 0.2, train, height=0.38, color=TRAIN_COLOUR, label=titles[0])
    asked = axes.barh(rows + 0.2, test, height=0.38, color=TEST_COLOUR, label=titles[1])
    axes.set_yticks(rows, names)
    axes.invert_yaxis()
    axes.set_xlabel("share of the triples")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    axes.margins(y=0.01)
    return [seen, asked]


def _draw_ranks(axes: Axes, train: Shares, test: Shares, titles: tuple[str, str]) -> list[Any]:
    ranks = np.arange(1, len(train) + 1)
    shown = test > 0
    absent = int((~shown).sum())
    seen = axes.bar(ranks, train, width=1.0, color=TRAIN_COLOUR, label=titles[0])
    label = titles[1] if not absent else f"{titles[1]}; {absent} relations have none"
    (asked,) = axes.plot(
        ranks[shown], test[shown], linestyle="none", marker="o", markersize=3, color=TEST_COLOUR, label=label
    )
    axes.set_yscale("log")
    axes.set_xlim(0, len(train) + 1)
    axes.set_xlabel("relation, by falling share in train")
    axes.set_ylabel("share of the triples")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    return [seen, asked]


def _shares(counts: list[int]) -> Shares:
    values = np.array(counts, dtype=np.float64)
    shares: Shares = values / max(values.sum(), 1.0)
    return shares
