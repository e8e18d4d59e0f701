"""Kernels of the plan, second half: the slots (query, entity) of every layer, and the edges that enter them.

Downwards from the layer where the cones meet, the edges that enter a layer's slots say who the slots of the layer
below are. Upwards, a slot is whoever is near enough to a candidate and has an edge from a slot below, or was one.
Either way the edges of a slot are looked at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel
from kgcf.propagation.plan.cones import Adjacency, Scratch, is_hidden


class Slots(NamedTuple):
    """Per slot, query by query; grows as needed."""

    entities: NDArray[np.int32]
    previous: NDArray[np.int32]  # slot of the same entity one layer before (counted within the query), or −1
    degrees: NDArray[np.int32]  # visible edges, listed or not
    reached: NDArray[np.int32]  # those from slots of the layer before
    edge_counts: NDArray[np.int32]  # those listed: all of the reached, or as many as may be drawn


class Edges(NamedTuple):
    """Per listed edge, sorted by target slot."""

    sources: NDArray[np.int32]  # slot in the layer before, counted within the query
    relations: NDArray[np.int32]  # in 0 … 2R − 1, in the direction of the message
    entries: NDArray[np.int32]  # where the edge, turned round, stands in the graph's table


class Buffers(NamedTuple):
    """Where plans are written before their layers are put together."""

    slots: Slots
    edges: Edges


class Draw(NamedTuple):
    """How the edges of an update are drawn: at most `fan_in` of them, 0 for all."""

    fan_in: int
    key: np.uint64  # of the query


@kernel
def _mixed(value: np.uint64) -> np.uint64:
    """The bits of a number thoroughly mixed (the finisher of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def draw_entries(entries: NDArray[np.int32], draw: Draw, layer: int, entity: int) -> None:
    """Bring `fan_in` of the entries to the front, every choice of them equally likely, in their order.

    What is drawn depends on the query's key, the layer and the entity alone: not on plans, parts or threads.
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    state = _mixed(draw.key ^ _mixed(np.uint64(entity) * step + np.uint64(layer)))
    for k in range(draw.fan_in):
        state = state + step
        left = np.uint64(len(entries) - k)
        chosen = k + np.int64(((_mixed(state) >> np.uint64(32)) * left) >> np.uint64(32))
        entries[k], entries[chosen] = entries[chosen], entries[k]
    entries[: draw.fan_in].sort()


@kernel
def _write_slot(
    graph: Adjacency, scratch: Scratch, buffers: Buffers, slot: int, entity: int, reached: int, listed: int
) -> None:
    slots = buffers.slots
    slots.entities[slot] = entity
    slots.previous[slot] = scratch.slot_of[entity]
    slots.degrees[slot] = graph.offsets[entity + 1] - graph.offsets[entity] - scratch.hidden_at[entity]
    slots.reached[slot] = reached
    slots.edge_counts[slot] = listed


@kernel
def _write_edges(graph: Adjacency, scratch: Scratch, edges: Edges, begin: int, end: int) -> None:
    """Sources and relations of the entries begin … end; the slots of the layer before are numbered."""
    for k in range(begin, end):
        entry = edges.entries[k]
        relation = graph.relations[entry]
        turned = graph.relation_count if relation < graph.relation_count else -graph.relation_count
        edges.sources[k] = scratch.slot_of[graph.tails[entry]]
        edges.relations[k] = relation + turned


@kernel
def list_below(
    graph: Adjacency,
    scratch: Scratch,
    layer: int,
    size: int,
    buffers: Buffers,
    first_slot: int,
    first_edge: int,
    draw: Draw,
) -> tuple[int, int, int]:
    """List the edges that enter a layer's members from entities within layer − 1 hops of the head.

    These, and the members so near themselves, are numbered as the members of the layer below. The members that stay
    (all but those that nobody reaches), the end of the edges, and how many members the layer below has.
    """
    entries, ahead, slot_of = buffers.edges.entries, scratch.ahead, scratch.slot_of
    members, below = scratch.members[layer], scratch.members[layer - 1]
    kept, count, found = 0, first_edge, 0
    for i in range(size):
        entity = members[i]
        start = count
        checked = scratch.hidden_at[entity] > 0
        for entry in range(graph.offsets[entity], graph.offsets[entity + 1]):
            hops = ahead[graph.tails[entry]]
            entries[count] = entry  # overwritten by the next edge unless it counts: cheaper than a branch
            count += 0 <= hops < layer and not (checked and is_hidden(graph, scratch, entry))
        reached = count - start
        if 0 < draw.fan_in < reached:
            draw_entries(entries[start:count], draw, layer, entity)
            count = start + draw.fan_in
        near = 0 <= ahead[entity] < layer
        if near and slot_of[entity] < 0:
            slot_of[entity] = found
            below[found] = entity
            found += 1
        if near or reached:
            for k in range(start, count):
                source = graph.tails[entries[k]]
                if slot_of[source] < 0:
                    slot_of[source] = found
                    below[found] = source
                    found += 1
            _write_slot(graph, scratch, buffers, first_slot + kept, entity, reached, count - start)
            members[kept] = entity
            kept += 1
    _write_edges(graph, scratch, buffers.edges, first_edge, count)
    return kept, count, found


@kernel
def list_above(
    graph: Adjacency,
    scratch: Scratch,
    layer: int,
    candidates: NDArray[np.int32],
    buffers: Buffers,
    first_slot: int,
    first_edge: int,
) -> tuple[int, int]:
    """List the edges that enter the candidates of a layer from the members of the layer below, which are numbered.

    Members are those with such an edge and those that were members before; how many, and the end of the edges.
    """
    entries, slot_of = buffers.edges.entries, scratch.slot_of
    kept, count = 0, first_edge
    for entity in candidates:
        start = count
        checked = scratch.hidden_at[entity] > 0
        for entry in range(graph.offsets[entity], graph.offsets[entity + 1]):
            entries[count] = entry
            count += slot_of[graph.tails[entry]] >= 0 and not (checked and is_hidden(graph, scratch, entry))
        if slot_of[entity] >= 0 or count > start:
            _write_slot(graph, scratch, buffers, first_slot + kept, entity, count - start, count - start)
            scratch.members[layer, kept] = entity
            kept += 1
    _write_edges(graph, scratch, buffers.edges, first_edge, count)
    return kept, count


@kernel
def list_lowest(graph: Adjacency, scratch: Scratch, size: int, buffers: Buffers, first_slot: int) -> None:
    """Write the slots of layer 0: the head, if anything depends on it."""
    for i in range(size):
        _write_slot(graph, scratch, buffers, first_slot + i, scratch.members[0, i], 0, 0)


@kernel
def number_members(scratch: Scratch, layer: int, size: int, forget: bool) -> None:
    """Number the slots of a layer, or forget the numbers."""
    for i in range(size):
        scratch.slot_of[scratch.members[layer, i]] = -1 if forget else i
