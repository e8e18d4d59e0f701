"""Draw docs/cones.svg: how many entities each layer of a WN18RR training query could touch, and how many it must.

python scripts/draw_cones.py
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray

from kgcf.data import registry
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import hide_triples
from kgcf.propagation.plan.planner import Planner

LAYERS, QUERIES, CANDIDATES = 6, 300, 33
PICTURE = Path(__file__).parent.parent / "docs" / "cones.svg"


def ball_sizes(graph: KnowledgeGraph, starts: NDArray[np.int64]) -> list[int]:
    """Entities within 0 … L hops of any of the starts."""
    seen = np.zeros(graph.entity_count, bool)
    frontier = np.unique(starts)
    seen[frontier] = True
    sizes = [len(frontier)]
    for _ in range(LAYERS):
        rows = [graph.edge_tails[graph.offsets[v] : graph.offsets[v + 1]] for v in frontier]
        reached = np.unique(np.concatenate(rows)).astype(np.int64) if rows else frontier
        frontier = reached[~seen[reached]]
        seen[frontier] = True
        sizes.append(int(seen.sum()))
    return sizes


def measure(graph: KnowledgeGraph) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean sizes per layer of the forward cone, of the backward cone, and of what both share."""
    rng = np.random.default_rng(0)
    triples = graph.triples[rng.integers(0, len(graph), QUERIES)].astype(np.int64)
    candidates = rng.integers(0, graph.entity_count, (QUERIES, CANDIDATES))
    candidates[:, 0] = triples[:, 2]
    hidden = hide_triples(graph, *triples.T)
    plan = Planner(graph, LAYERS).plan(triples[:, 0], triples[:, 1], candidates, hidden)
    forward = np.array([ball_sizes(graph, triples[i, :1]) for i in range(QUERIES)])
    backward = np.array([ball_sizes(graph, row) for row in candidates])
    shared = np.array([len(layer.entities) / QUERIES for layer in plan.layers])
    return forward.mean(0), backward.mean(0)[::-1], shared


def draw(graph: KnowledgeGraph) -> None:
    """Mirror log-sizes around the axis, so that they look like what they are: cones."""
    mpl.rcParams["svg.hashsalt"] = "cones"
    forward, backward, shared = measure(graph)
    layers = np.arange(LAYERS + 1)
    figure, axes = plt.subplots(figsize=(8, 4))
    total = graph.entity_count
    axes.axhspan(-np.log10(total), np.log10(total), color="#eeeeee", label=f"dense: all {total:,} entities")
    for sizes, colour, label in (
        (forward, "#4c78a8", "within l hops of the head"),
        (backward, "#f58518", "within L − l hops of a candidate"),
        (shared, "#54a24b", "both: what is computed"),
    ):
        half = np.log10(np.maximum(sizes, 1))
        axes.fill_between(layers, -half, half, color=colour, alpha=0.95 if sizes is shared else 0.4, label=label, lw=0)
    for layer, size in zip(layers, shared, strict=True):
        side = {0: "left", LAYERS: "right"}.get(int(layer), "center")
        axes.annotate(f"{size:,.0f}", (layer, 0.15), ha=side, va="bottom", fontsize=9)
    axes.set(xlabel="layer l", yticks=[], xlim=(0, LAYERS), title="Entities per layer of a WN18RR training query (log)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, fontsize=9)
    figure.savefig(PICTURE, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    draw(registry.load("wn18rr").graph)
