"""Plans in which every entity has a state from the beginning (`semantics = nbfnet`): no walk has to reach it.

Biases give an entity a state whether or not a path leads to it, so the cone around the head says nothing; only that
around the candidates does: layer l needs whom L − l visible edges lead to a candidate, and for a ranking everybody.
Slots and edges are the same as in other plans, and the same kernels compute them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
from kgcf.errors import SettingsError
from kgcf.propagation.plan.cones import Questions
from kgcf.propagation.plan.plans import Budget, LayerPlan, Plan


@dataclass(frozen=True, eq=False)
class _Asked:
    """One query: what it sees and needs."""

    degrees: NDArray[np.int64]  # [N] visible edges that enter
    mean: float  # of the log-degrees
    entities: list[NDArray[np.int64]]  # of every layer 0 … L, ascending
    edges: list[NDArray[np.int64]]  # that enter the entities of a layer, in the order of the graph's table; 0: none

    def cost(self, budget: Budget) -> float:
        """Bytes, reckoned as for every plan."""
        limits = budget.limits
        slots, edges = sum(map(len, self.entities)), sum(map(len, self.edges))
        return slots * limits.slot_bytes + edges * limits.edge_bytes + limits.query_bytes


def plan_everybody(
    graph: KnowledgeGraph, layers: int, questions: Questions, relations: NDArray[np.int64], budget: Budget
) -> Iterator[Plan]:
    """Plans for consecutive parts of a batch, each as large as the budget allows; refuses what one query exceeds."""
    if questions.fan_in:
        raise SettingsError("encoder.semantics = nbfnet aggregates all edges: leave training.fan_in out.")
    targets = np.repeat(np.arange(graph.entity_count), graph.degrees)  # [2E] whom every edge of the table enters
    part, taken, first = list[_Asked](), 0.0, 0
    for index in range(len(relations)):
        asked = _look(graph, layers, questions, index, targets)
        cost = asked.cost(budget)
        if cost > budget.total:
            raise SettingsError(_too_large(graph, layers, cost, budget.total))
        if part and taken + cost > budget.total:
            yield _join(graph, layers, questions, relations, first, part, targets)
            part, taken, first = [], 0.0, index
        part.append(asked)
        taken += cost
    yield _join(graph, layers, questions, relations, first, part, targets)


def _too_large(graph: KnowledgeGraph, layers: int, cost: float, total: float) -> str:
    return (
        f"encoder.semantics = nbfnet computes a state for each of {graph.entity_count:,} entities in each of {layers} "
        f"layers: one question would take {cost / 1e9:.1f} GB, and training.memory_gb allows {total / 1e9:.1f}. "
        "It is meant for small graphs; take encoder.semantics = grounded, or allow more."
    )


def _look(graph: KnowledgeGraph, layers: int, questions: Questions, index: int, targets: NDArray[np.int64]) -> _Asked:
    """What query `index` sees of the graph, and from the candidates back what it needs."""
    begin, end = questions.hidden_offsets[index : index + 2]
    visible = np.ones(graph.edge_count, dtype=bool)
    if end > begin:
        out = np.zeros(len(graph), dtype=bool)
        out[questions.hidden_triples[begin:end]] = True
        visible = ~out[graph.edge_triples % len(graph)]
    degrees = np.bincount(targets[visible], minlength=graph.entity_count)
    needed = np.full(graph.entity_count, questions.ranking)
    needed[questions.candidates[index]] = True
    entities, edges = [np.flatnonzero(needed)], list[NDArray[np.int64]]()
    for _ in range(layers):
        edges.append(np.flatnonzero(visible & needed[targets]))
        needed[graph.edge_tails[edges[-1]]] = True
        entities.append(np.flatnonzero(needed))
    edges.append(np.zeros(0, np.int64))
    mean = float(np.log1p(degrees).sum()) / max(graph.entity_count, 1)
    return _Asked(degrees, mean, entities[::-1], edges[::-1])


def _join(
    graph: KnowledgeGraph,
    depth: int,
    questions: Questions,
    relations: NDArray[np.int64],
    first: int,
    part: list[_Asked],
    targets: NDArray[np.int64],
) -> Plan:
    """One plan of consecutive queries from `first` on."""
    rows = slice(first, first + len(part))
    heads, offsets = questions.heads[rows], questions.hidden_offsets[first : first + len(part) + 1]
    hidden = HiddenTriples(offsets - offsets[0], questions.hidden_triples[offsets[0] : offsets[-1]])
    layers = tuple(_layer(graph, heads, part, index, targets) for index in range(depth + 1))
    places = None
    if not questions.ranking:
        base = layers[-1].slot_offsets
        found = [np.searchsorted(a.entities[-1], c) for a, c in zip(part, questions.candidates[rows], strict=True)]
        places = np.array(found, dtype=np.int64).reshape(questions.candidates[rows].shape) + base[:-1, None]
    return Plan(
        graph=graph,
        first=first,
        heads=heads,
        relations=relations[rows],
        hidden=hidden,
        layers=layers,
        mean_log_degrees=np.array([asked.mean for asked in part]),
        meetings=np.zeros(len(part), np.int64),
        candidates=None if questions.ranking else questions.candidates[rows],
        rows=places,
        everybody=True,
    )


def _layer(
    graph: KnowledgeGraph, heads: NDArray[np.int64], part: list[_Asked], index: int, targets: NDArray[np.int64]
) -> LayerPlan:
    """Layer `index` of all queries: everybody in it was in the layer before, and so was every sender."""
    sizes = np.array([len(asked.entities[index]) for asked in part], dtype=np.int64)
    offsets = np.cumsum([0, *sizes])
    before = np.cumsum([0, *(len(asked.entities[index - 1]) for asked in part)]) if index else offsets
    nothing = np.zeros(0, np.int64)
    previous, sources, counts, at = [nothing], [nothing], [nothing], np.full(len(part), -1, np.int64)
    for row, asked in enumerate(part):
        entities, edges = asked.entities[index], asked.edges[index]
        place = np.searchsorted(entities, heads[row])
        if place < len(entities) and entities[place] == heads[row]:
            at[row] = offsets[row] + place
        counts.append(np.bincount(targets[edges], minlength=graph.entity_count)[entities])
        if index:
            numbers = np.zeros(graph.entity_count, np.int64)
            numbers[asked.entities[index - 1]] = np.arange(before[row], before[row + 1])
            previous.append(numbers[entities])
            sources.append(numbers[graph.edge_tails[edges]])
        else:
            previous.append(np.full(len(entities), -1))
    entries = np.concatenate([nothing, *(asked.edges[index] for asked in part)])
    degrees = np.concatenate([nothing, *(asked.degrees[asked.entities[index]] for asked in part)])
    means = np.repeat(np.array([asked.mean for asked in part]), sizes)
    scales = np.divide(np.log1p(degrees), means, out=np.zeros(len(degrees)), where=means > 0)
    return LayerPlan(
        slot_offsets=offsets,
        entities=np.concatenate([nothing, *(asked.entities[index] for asked in part)]).astype(np.int32),
        previous=np.concatenate(previous).astype(np.int32),
        degrees=degrees.astype(np.int32),
        reached=degrees.astype(np.int32),
        edge_offsets=np.cumsum(np.concatenate([[0], *counts])),
        sources=np.concatenate(sources).astype(np.int32),
        relations=graph.inverse(graph.edge_relations[entries]).astype(np.int32),
        entries=entries.astype(np.int32),
        scales=scales,
        heads=at,
    )
