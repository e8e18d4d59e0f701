"""Kernels that plan a whole batch: query after query into growing buffers, then layer by layer into a plan."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel
from kgcf.propagation.plan.cones import (
    Adjacency,
    Questions,
    Scratch,
    clear_cones,
    grow_cones,
    log_degree_change,
    mark_hidden,
)
from kgcf.propagation.plan.listing import (
    Buffers,
    Draw,
    Edges,
    Slots,
    list_above,
    list_below,
    list_lowest,
    number_members,
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
    slot_starts: NDArray[np.int64]  # [B, L + 1] where a layer's slots begin in the buffers
    edge_starts: NDArray[np.int64]  # [B, L + 1]
    log_degrees: NDArray[np.float64]  # [B] change of the sum of log(degree + 1) by the hidden set
    rows: NDArray[np.int64]  # [B, K] slot of every candidate in the last layer, within the query, −1 unreached
    meetings: NDArray[np.int64]  # [B] the depth at which the cones met


@kernel
def _widened(array: NDArray[np.int32], used: int, room: int) -> NDArray[np.int32]:
    wider = np.empty(room, np.int32)
    wider[:used] = array[:used]
    return wider


class Written(NamedTuple):
    """The buffers, and how far they are full."""

    buffers: Buffers
    slot: int
    edge: int


@kernel
def _with_room(written: Written, slot_count: int, edge_count: int) -> Written:
    """The same in buffers made wider where so many more slots and edges do not fit behind those that they hold."""
    slots, edges = written.buffers.slots, written.buffers.edges
    slot_end, edge_end = written.slot, written.edge
    if slot_end + slot_count > len(slots.entities):
        room = 2 * (slot_end + slot_count)
        slots = Slots(
            _widened(slots.entities, slot_end, room),
            _widened(slots.previous, slot_end, room),
            _widened(slots.degrees, slot_end, room),
            _widened(slots.reached, slot_end, room),
            _widened(slots.edge_counts, slot_end, room),
        )
    if edge_end + edge_count > len(edges.sources):
        room = 2 * (edge_end + edge_count)
        edges = Edges(
            _widened(edges.sources, edge_end, room),
            _widened(edges.relations, edge_end, room),
            _widened(edges.entries, edge_end, room),
        )
    return Written(Buffers(slots, edges), slot_end, edge_end)


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
def _note(findings: Findings, b: int, layer: int, written: Written, slot_count: int, edge_end: int) -> Written:
    """Say where a layer of a query, just written, stands in the buffers."""
    findings.slot_starts[b, layer], findings.slot_counts[b, layer] = written.slot, slot_count
    findings.edge_starts[b, layer], findings.edge_counts[b, layer] = written.edge, edge_end - written.edge
    return Written(written.buffers, written.slot + slot_count, edge_end)


@kernel
def _list_downwards(
    graph: Adjacency, scratch: Scratch, findings: Findings, b: int, top: int, size: int, written: Written, draw: Draw
) -> Written:
    """Write the layers of a query from `top`, whose members are known, down to 0."""
    for layer in range(top, 0, -1):
        written = _with_room(written, size, _most_edges(graph, scratch.members[layer, :size]))
        kept, end, below = list_below(graph, scratch, layer, size, written.buffers, written.slot, written.edge, draw)
        written = _note(findings, b, layer, written, kept, end)
        size = below
        number_members(scratch, layer - 1, size, True)
    written = _with_room(written, size, 1)
    list_lowest(graph, scratch, size, written.buffers, written.slot)
    return _note(findings, b, 0, written, size, written.edge)


@kernel
def _list_upwards(
    graph: Adjacency, scratch: Scratch, findings: Findings, b: int, bottom: int, ranking: bool, written: Written
) -> Written:
    """Write the layers of a query above `bottom`, which is written; the members of the last one stay numbered."""
    layers = findings.slot_counts.shape[1] - 1
    number_members(scratch, bottom, findings.slot_counts[b, bottom], False)
    for layer in range(bottom + 1, layers + 1):
        side, depth = (0, layer) if ranking else (1, layers - layer)
        candidates = scratch.ball[side, : scratch.levels[side, depth + 1]]
        written = _with_room(written, len(candidates), _most_edges(graph, candidates))
        kept, end = list_above(graph, scratch, layer, candidates, written.buffers, written.slot, written.edge)
        written = _note(findings, b, layer, written, kept, end)
        number_members(scratch, layer - 1, findings.slot_counts[b, layer - 1], True)
        number_members(scratch, layer, kept, False)
    return written


@kernel
def _meet(scratch: Scratch, layer: int, backward: int, drawn: bool) -> int:
    """The members of the layer where the cones meet: who is in both; how many.

    Before a draw these are the candidates: whether they are reached is seen by their edges.
    """
    count = 0
    for i in range(scratch.levels[1, backward + 1]):
        entity = scratch.ball[1, i]
        if drawn or scratch.ahead[entity] >= 0:
            scratch.members[layer, count] = entity
            count += 1
    return count


@kernel
def _plan_query(
    graph: Adjacency, questions: Questions, scratch: Scratch, findings: Findings, b: int, meeting: int, written: Written
) -> Written:
    """Write all layers of one query."""
    head, candidates = questions.heads[b], questions.candidates[b]
    layers = findings.slot_counts.shape[1] - 1
    drawn = questions.fan_in > 0 and not questions.ranking
    steps = layers - 1 if drawn else layers  # a draw goes down from the candidates, knowing who is reached below
    forward = grow_cones(graph, scratch, head, candidates, steps, steps if drawn or questions.ranking else meeting)
    findings.meetings[b] = layers if drawn else forward
    if questions.ranking:
        start, size = 0, 1
        scratch.members[0, 0] = head
    else:
        start = findings.meetings[b]
        size = _meet(scratch, start, steps - forward, drawn)
    draw = Draw(questions.fan_in, questions.keys[b])
    written = _list_downwards(graph, scratch, findings, b, start, size, written, draw)
    written = _list_upwards(graph, scratch, findings, b, start, questions.ranking, written)
    _find_rows(candidates, scratch.slot_of, findings.rows[b])
    number_members(scratch, layers, findings.slot_counts[b, layers], True)
    clear_cones(scratch, forward, steps - forward)
    return written


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
    written = Written(buffers, 0, 0)
    for b in range(first, len(questions.heads)):
        hidden = questions.hidden_triples[questions.hidden_offsets[b] : questions.hidden_offsets[b + 1]]
        mark_hidden(graph, hidden, scratch, False)
        findings.log_degrees[b] = log_degree_change(graph, hidden, scratch.hidden_at)
        written = _plan_query(graph, questions, scratch, findings, b, meeting, written)
        mark_hidden(graph, hidden, scratch, True)
        cost = written.slot * limits.slot_bytes + written.edge * limits.edge_bytes
        if cost + (b + 1 - first) * limits.query_bytes > limits.budget and b > first:
            return b, written.buffers
    return len(questions.heads), written.buffers


class LayerSlots(NamedTuple):
    """Arrays over the S slots of one layer, and over the B queries, to be filled."""

    entities: NDArray[np.int32]  # [S]
    previous: NDArray[np.int32]  # [S]
    degrees: NDArray[np.int32]  # [S]
    reached: NDArray[np.int32]  # [S]
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
            layer.reached[target] = slots.reached[source]
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
