"""The results of time_budget.py as a table and as a picture: the rule's choice among fixed choices."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from kgcf.durations import spoken

_RULE, _GRID = "#b23a48", "#9aa5b1"
_COMMON = ("default", "memory.enabled=off", "training.threads=1")  # of the rows in docs/training.md
Graphs = Mapping[str, Mapping[str, Any]]


def finished(graphs: Graphs) -> dict[str, Mapping[str, Any]]:
    """Graphs and times of which the rule's choice and at least one other were trained."""
    return {key: known for key, known in graphs.items() if "rule" in known["cells"] and len(known["cells"]) > 1}


def label(key: str) -> str:
    """The graph and its time, and what not all rows have in common; times as people say them."""
    name, seconds, *rest = key.split(", ")
    more = [part for part in rest if part not in _COMMON]
    return ", ".join([name, spoken(float(seconds.removesuffix(" s"))), *more])


def markdown(graphs: Graphs) -> str:
    """A row per graph and time."""
    lines = [
        "| graph, time | rule: layers × negatives, passes | its validation MRR | best fixed | its MRR | regret | "
        "held out |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, known in finished(graphs).items():
        rule, regret = known["cells"]["rule"], known["regret"]
        others = {name: cell for name, cell in known["cells"].items() if name != "rule"}
        best = max(others, key=lambda name: float(others[name]["mrr"]))
        chosen = f"{rule['layers']} × {rule['negatives']}, {rule['passes']:,}"
        behind = f"{regret['mrr']:.3f} ± {regret['standard_error']:.3f}"
        fair = f"{regret['held_out']:+.3f} ± {regret['held_out_standard_error']:.3f}"
        reached = f"{rule['mrr']:.3f} | {best} | {others[best]['mrr']:.3f}"
        lines.append(f"| {label(key)} | {chosen} | {reached} | {behind} | {fair} |")
    refused = [key for key, known in graphs.items() if "refused" in (known.get("survey") or {})]
    if refused:
        lines += ["", f"Refused, with the least time that would do: {'; '.join(map(label, refused))}."]
    return "\n".join(lines)


def draw(graphs: Graphs) -> Figure:
    """A row per graph and time: MRR relative to the best, grey for fixed choices, red for the rule's."""
    shown = finished(graphs)
    figure = Figure(figsize=(8, 1.2 + 0.36 * max(len(shown), 1)), layout="constrained")
    axes = figure.add_subplot()
    for row, known in enumerate(shown.values()):
        cells = known["cells"]
        top = max(float(cell["mrr"]) for cell in cells.values())
        grid = {name: float(cell["mrr"]) / top for name, cell in cells.items() if name != "rule"}
        axes.plot(list(grid.values()), [row] * len(grid), "o", color=_GRID, label="fixed choices" if not row else None)
        worth = float(cells["rule"]["mrr"]) / top
        axes.plot([worth], [row], "D", color=_RULE, label="the rule's choice" if not row else None)
    axes.set_yticks(range(len(shown)), [label(key) for key in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("validation MRR, relative to the best of the row")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
    if shown:
        axes.legend(frameon=False, loc="upper left")
    return figure
