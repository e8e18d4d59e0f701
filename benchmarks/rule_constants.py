"""Would other constants of the rule choose better? On what time_budget.py has trained; nothing is trained here.

Run: python benchmarks/rule_constants.py [--input results/time_budget.json] [--output results/rule_constants.json]

A row is a graph and a time; the rule may choose among the cells of the row, by their worth. Its regret is how far the
validation MRR of its choice lies below the best of the row, relative to the best. Constants come from a grid around
ours; *held out*: those with the least mean regret on all other graphs, on the graph that is left out.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from kgcf.machine.provenance import provenance
from kgcf.storage import write_json
from kgcf.training import choice

NAMES = ("REACH_POWER", "SHALLOW", "HALF_LEARNED", "HALF_NEGATIVES")
Constants = tuple[float, ...]  # in this order
OURS: Constants = tuple(float(getattr(choice, name)) for name in NAMES)
GRID: list[Constants] = list(
    product(
        (0.1, 0.2, 0.3, 0.5), (0.1, 0.25, 0.5, 0.8), (1000, 2000, 3600, 6000, 10_000, 20_000), (0, 0.25, 0.5, 1, 2, 4)
    )
)


@dataclass(frozen=True)
class Row:
    """A graph and a time: what the rule would say of every cell depends on its size and reach alone."""

    graph: str
    sizes: list[tuple[float, int, int, int, int | None]]  # reach, layers, negatives, passes, fan-in
    mrr: list[float]

    def regret(self) -> float:
        """Of the constants that are set now."""
        chosen = max(range(len(self.sizes)), key=lambda index: choice.worth(*self.sizes[index]))
        return (max(self.mrr) - self.mrr[chosen]) / max(self.mrr)


def rows_of(graphs: Mapping[str, Any]) -> list[Row]:
    """What was trained, where there is something to choose from."""
    rows = []
    for key, known in graphs.items():
        if len(known["cells"]) > 1:
            reach = known["survey"]["survey"]["reach"]
            cells = list(known["cells"].values())
            sizes = [
                (reach[min(c["layers"], len(reach)) - 1], c["layers"], c["negatives"], c["passes"], c.get("fan_in"))
                for c in cells
            ]
            rows.append(Row(key.split(", ")[0], sizes, [float(c["mrr"]) for c in cells]))
    return rows


@contextmanager
def set_to(constants: Constants) -> Iterator[None]:
    """The rule with other constants."""
    for name, value in zip(NAMES, constants, strict=True):
        setattr(choice, name, value)
    try:
        yield
    finally:
        for name, value in zip(NAMES, OURS, strict=True):
            setattr(choice, name, value)


def regrets(rows: Sequence[Row], constants: Constants) -> list[float]:
    """Of every row."""
    with set_to(constants):
        return [row.regret() for row in rows]


def held_out(rows: Sequence[Row]) -> dict[str, Any]:
    """For every graph: constants chosen without it, and their regret on it beside ours."""
    table = np.array([regrets(rows, constants) for constants in GRID])  # [grid, rows]
    ours = np.array(regrets(rows, OURS))
    found: dict[str, Any] = {}
    for graph in sorted({row.graph for row in rows}):
        own = np.array([row.graph == graph for row in rows])
        best = int(table[:, ~own].mean(axis=1).argmin())
        found[graph] = {
            "constants": dict(zip(NAMES, GRID[best], strict=True)),
            "regret": float(table[best, own].mean()),
            "regret_of_ours": float(ours[own].mean()),
        }
    return found


def main() -> None:
    """Compare, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, default=Path("results/time_budget.json"))
    parser.add_argument("--output", type=Path, default=Path("results/rule_constants.json"))
    given = parser.parse_args()
    rows = rows_of(json.loads(given.input.read_text(encoding="utf-8"))["graphs"])
    graphs = held_out(rows)
    means = {name: float(np.mean([graph[name] for graph in graphs.values()])) for name in ("regret", "regret_of_ours")}
    write_json(given.output, {"rows": len(rows), "graphs": graphs, "mean": means, "protocol": provenance()})
    for graph, found in graphs.items():
        print(f"{graph}: ours {found['regret_of_ours']:.4f}, chosen on the others {found['regret']:.4f}")
    print(f"mean: ours {means['regret_of_ours']:.4f}, chosen on the others {means['regret']:.4f}")


if __name__ == "__main__":
    main()
