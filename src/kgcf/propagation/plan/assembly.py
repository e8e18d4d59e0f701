"""Kernels that plan a whole batch: query after query into growing buffers, then layer by layer into a plan."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel
from kgcf.propagation.plan.cones import (
    Adjacency,
    Buffers,
    Edges,
    Questions,
    Scratch,
    Slots,
    clear_cones,
    grow_cones,
    list_edges,
    log_degree_change,
    mark_hidden,
    select_everything,
    select_members,
    set_places,
)


class Limits(NamedTuple):
    """What a plan may cost, in bytes; the last query that would exceed the budget is left to the next plan."""

    slot_bytes: float
    edge_bytes: float
    query_bytes: float
    budget: float


class Findings(NamedTuple):
    """What planning says about every query, filled in place."""

    slot_counts: NDArray[np.int64]  # [B, L + 1]
    edge_counts: NDArray[np.int64]  # [B, L + 1]
    log_degrees: NDArray[np.float64]  # [B] change of the sum of log(degree + 1) by the hidden set
    rows: NDArray[np.int64]  # [B, K] slot of every candidate in the last layer, within the query, −1 unreached
    meetings: NDArray[np.int64]  # [B] the depth at which the cones met


@kernel
def _widened(array: NDArray[np.int32], used: int, room: int) -> NDArray[np.int32]:
    wider = np.empty(room, np.int32)
    wider[:used] = array[:used]
    return wider


@kernel
def _with_room(buffers: Buffers, slot_end: int, slot_count: int, edge_end: int, edge_count: int) -> Buffers:
    """The buffers, made wider where so many more slots and edges do not fit behind those that they hold."""
    slots, edges = buffers.slots, buffers.edges
    if slot_end + slot_count > len(slots.entities):
        room = 2 * (slot_end + slot_count)
        slots = Slots(
            _widened(slots.entities, slot_end, room),
            _widened(slots.previous, slot_end, room),
            _widened(slots.degrees, slot_end, room),
            _widened(slots.edge_counts, slot_end, room),
        )
    if edge_end + edge_count > len(edges.sources):
        room = 2 * (edge_end + edge_count)
        edges = Edges(
            _widened(edges.sources, edge_end, room),
            _widened(edges.relations, edge_end, room),
            _widened(edges.entries, edge_end, room),
        )
    return Buffers(slots, edges)


@kernel
def _most_edges(graph: Adjacency, members: NDArray[np.int32]) -> int:
    total = 1  # one more is written than counts
    for entity in members:
        total += graph.offsets[entity + 1] - graph.offsets[entity]
    return total


@kernel
def _find_rows(candidates: NDArray[np.int64], slot_of: NDArray[np.int32], rows: NDArray[np.int64]) -> None:
    for k in range(len(candidates)):
        rows[k] = slot_of[candidates[k]]


@kernel
def _list_layers(
    graph: Adjacency,
    hidden: NDArray[np.int32],
    scratch: Scratch,
    sizes: NDArray[np.int64],
    buffers: Buffers,
    slot_used: int,
    edge_used: int,
    edge_counts: NDArray[np.int64],
) -> tuple[int, int, Buffers]:
    """Write one query's layers behind what the buffers hold; the last layer's slots stay in `place`."""
    for layer in range(len(sizes)):
        size = sizes[layer]
        most = _most_edges(graph, scratch.members[layer, :size])
        buffers = _with_room(buffers, slot_used, size, edge_used, most)
        end = list_edges(graph, hidden, scratch, layer, size, buffers, slot_used, edge_used)
        edge_counts[layer] = end - edge_used
        slot_used, edge_used = slot_used + size, end
        if layer > 0:
            set_places(scratch, layer - 1, sizes[layer - 1], True)
        set_places(scratch, layer, size, False)
    return slot_used, edge_used, buffers


@kernel
def plan_queries(
    graph: Adjacency,
    questions: Questions,
    scratch: Scratch,
    buffers: Buffers,
    findings: Findings,
    limits: Limits,
    first: int,
    meeting: int,
) -> tuple[int, Buffers]:
    """Plan the queries from `first` on until the budget is full; where it stopped, and the buffers."""
    slot_used, edge_used = 0, 0
    layers = findings.slot_counts.shape[1] - 1
    for b in range(first, len(questions.heads)):
        hidden = questions.hidden_triples[questions.hidden_offsets[b] : questions.hidden_offsets[b + 1]]
        heads, tails = graph.ends[hidden, 0], graph.ends[hidden, 2]
        mark_hidden(heads, tails, scratch.hidden_at, 1)
        findings.log_degrees[b] = log_degree_change(graph, heads, tails, scratch.hidden_at)
        candidates, sizes = questions.candidates[b], findings.slot_counts[b]
        met = grow_cones(graph, hidden, scratch, questions.heads[b], candidates, layers, meeting)
        findings.meetings[b] = met
        if questions.ranking:
            select_everything(scratch, layers, sizes)
        else:
            select_members(graph, hidden, scratch, layers, met, sizes)
        slot_end, edge_end, buffers = _list_layers(
            graph, hidden, scratch, sizes, buffers, slot_used, edge_used, findings.edge_counts[b]
        )
        _find_rows(candidates, scratch.slot_of, findings.rows[b])
        set_places(scratch, layers, sizes[layers], True)
        clear_cones(scratch, met, layers - met)
        mark_hidden(heads, tails, scratch.hidden_at, -1)
        cost = slot_end * limits.slot_bytes + edge_end * limits.edge_bytes + (b + 1 - first) * limits.query_bytes
        if cost > limits.budget and b > first:
            return b, buffers
        slot_used, edge_used = slot_end, edge_end
    return len(questions.heads), buffers


class LayerSlots(NamedTuple):
    """Arrays over the S slots of one layer, and over the B queries, to be filled."""

    entities: NDArray[np.int32]  # [S]
    previous: NDArray[np.int32]  # [S]
    degrees: NDArray[np.int32]  # [S]
    edge_offsets: NDArray[np.int64]  # [S + 1]
    scales: NDArray[np.float64]  # [S]
    heads: NDArray[np.int64]  # [B]


@kernel
def collect_slots(
    slots: Slots,
    starts: NDArray[np.int64],  # [B] where the layer's slots of every query begin in the buffers
    offsets: NDArray[np.int64],  # [B + 1] where they go in the layer
    offsets_before: NDArray[np.int64],  # [B + 1] the slots of the layer before
    heads: NDArray[np.int64],  # [B] entities
    means: NDArray[np.float64],  # [B] mean log-degrees
    layer: LayerSlots,
) -> None:
    """Bring one layer's slots of all queries together; scale 0 where the visible graph has no edge at all."""
    layer.edge_offsets[0] = 0
    for b in range(len(starts)):
        layer.heads[b] = -1
        for i in range(offsets[b + 1] - offsets[b]):
            source, target = starts[b] + i, offsets[b] + i
            entity, before, degree = slots.entities[source], slots.previous[source], slots.degrees[source]
            layer.entities[target] = entity
            layer.previous[target] = before + offsets_before[b] if before >= 0 else -1
            layer.degrees[target] = degree
            layer.edge_offsets[target + 1] = layer.edge_offsets[target] + slots.edge_counts[source]
            layer.scales[target] = np.log(degree + 1.0) / means[b] if means[b] > 0 else 0.0
            if entity == heads[b]:
                layer.heads[b] = target


@kernel
def collect_edges(
    edges: Edges,
    starts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    offsets_before: NDArray[np.int64],
    sources: NDArray[np.int32],
    relations: NDArray[np.int32],
    entries: NDArray[np.int32],
) -> None:
    """Bring one layer's edges of all queries together; sources become slots of the whole layer before."""
    for b in range(len(starts)):
        begin, end = offsets[b], offsets[b + 1]
        shift = starts[b] - begin
        base = offsets_before[b]
        for i in range(begin, end):
            sources[i] = edges.sources[i + shift] + base
        relations[begin:end] = edges.relations[begin + shift : end + shift]
        entries[begin:end] = edges.entries[begin + shift : end + shift]
