"""The graph of some paths alone: only their entities and their edges, so that the model hears nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.propagation.plan.planner import Budget, Plan, Planner


@dataclass(frozen=True, eq=False)
class _Parts:
    """Several small graphs side by side in one, each with entities of its own."""

    graph: KnowledgeGraph
    ends: NDArray[np.int64]  # [Q, 2] head and tail of the question in each
    sizes: NDArray[np.int64]  # [Q] entities of each


def plan_alone(
    graph: KnowledgeGraph,
    question: tuple[int, int, int],
    sets: Sequence[NDArray[np.integer]],
    layers: int,
    budget: Budget | None = None,
) -> Iterator[Plan]:
    """One question (head, relation, tail) per set of triples, each on the graph of these triples alone.

    Its entities are the ends of the triples, the head and the tail; degrees and their mean are those of that graph.
    The sets are planned together, as components of one graph that no edge connects, in parts that the budget allows.
    """
    head, relation, tail = question
    parts = _side_by_side(graph, head, tail, sets)
    means = _mean_log_degrees(parts)
    asked = np.full(len(sets), relation)
    for plan in Planner(parts.graph, layers).parts(parts.ends[:, 0], asked, parts.ends[:, 1:], None, budget):
        own = means[plan.first : plan.first + len(plan)]
        # the planner takes the mean over all components; each question needs that of its own
        ratios = np.divide(plan.mean_log_degrees, own, out=np.ones(len(plan)), where=own > 0)
        steps = tuple(replace(step, scales=step.scales * ratios[step.queries]) for step in plan.layers)
        yield replace(plan, layers=steps, mean_log_degrees=own)


def _side_by_side(graph: KnowledgeGraph, head: int, tail: int, sets: Sequence[NDArray[np.integer]]) -> _Parts:
    triples, ends, sizes = [], [], []
    base = 0
    for rows in (graph.triples[chosen] for chosen in sets):
        named = np.concatenate([[head, tail], rows[:, 0], rows[:, 2]])
        entities, numbers = np.unique(named, return_inverse=True)
        numbers = numbers.astype(np.int64) + base
        ends.append(numbers[:2])
        triples.append(np.stack([numbers[2 : 2 + len(rows)], rows[:, 1], numbers[2 + len(rows) :]], axis=1))
        sizes.append(len(entities))
        base += len(entities)
    weights = None if graph.weights is None else np.concatenate([graph.weights[chosen] for chosen in sets])
    whole = KnowledgeGraph.build(np.concatenate(triples), base, graph.relation_count, weights)
    return _Parts(whole, np.array(ends, dtype=np.int64), np.array(sizes, dtype=np.int64))


def _mean_log_degrees(parts: _Parts) -> NDArray[np.float64]:
    starts = np.cumsum(parts.sizes) - parts.sizes
    sums: NDArray[np.float64] = np.add.reduceat(np.log1p(parts.graph.degrees), starts)
    return sums / parts.sizes
