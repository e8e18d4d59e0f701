"""Kernels of the plan: which (query, entity) slots of which layer can influence a score, and who talks to whom.

For one query, breadth-first search runs forward from the head and backward from the candidates; the side with
fewer edges ahead of it goes on, until both depths sum to L. Where the cones meet, the slots of that layer are
known; those of the layers before and after follow one edge at a time. All arrays are marked while a query is
planned and unmarked along the same lists afterwards, so the work is linear in what a query touches.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel


class Adjacency(NamedTuple):
    """The graph's table of edges, as kernels take it."""

    offsets: NDArray[np.int64]  # [N + 1]
    relations: NDArray[np.int32]  # [2E]
    tails: NDArray[np.int32]  # [2E]
    triples: NDArray[np.int32]  # [2E]
    ends: NDArray[np.int32]  # [E, 3] head, relation and tail of every triple
    relation_count: int
    triple_count: int


class Questions(NamedTuple):
    """A batch of queries: heads, candidates, and the triples each must not see."""

    heads: NDArray[np.int64]  # [B]
    candidates: NDArray[np.int64]  # [B, K]; K = 0 when every entity is one (ranking)
    hidden_offsets: NDArray[np.int64]  # [B + 1]
    hidden_triples: NDArray[np.int32]  # [H] ascending within a query
    ranking: bool  # whether every entity is a candidate


class Scratch(NamedTuple):
    """Arrays over entities, reused from query to query; clean (−1 or 0) between two queries."""

    ahead: NDArray[np.int8]  # [N] hops from the head, −1 beyond the forward cone
    behind: NDArray[np.int8]  # [N] hops to the nearest candidate, −1 beyond the backward cone
    slot_of: NDArray[np.int32]  # [N] slot of an entity in the layer at hand, −1 without one
    hidden_at: NDArray[np.int32]  # [N] hidden edges at an entity
    ball: NDArray[np.int32]  # [2, N] entities met going forward, and backward, in order
    levels: NDArray[np.int64]  # [2, L + 2] where each depth begins in `ball`
    members: NDArray[np.int32]  # [L + 1, N] entities of every layer


class Slots(NamedTuple):
    """Per slot, query by query and within it layer by layer; grows as needed."""

    entities: NDArray[np.int32]
    previous: NDArray[np.int32]  # slot of the same entity one layer before (counted within the query), or −1
    degrees: NDArray[np.int32]  # visible edges, listed or not
    edge_counts: NDArray[np.int32]  # listed edges: those from slots of the layer before


class Edges(NamedTuple):
    """Per listed edge, sorted by target slot."""

    sources: NDArray[np.int32]  # slot in the layer before, counted within the query
    relations: NDArray[np.int32]  # in 0 … 2R − 1, in the direction of the message
    entries: NDArray[np.int32]  # where the edge, turned round, stands in the graph's table


class Buffers(NamedTuple):
    """Where plans are written before their layers are put together."""

    slots: Slots
    edges: Edges


@kernel
def _is_hidden(graph: Adjacency, hidden: NDArray[np.int32], entry: int) -> bool:
    triple = graph.triples[entry] % graph.triple_count
    slot_of = np.searchsorted(hidden, triple)
    return bool(slot_of < len(hidden) and hidden[slot_of] == triple)


@kernel
def mark_hidden(heads: NDArray[np.int32], tails: NDArray[np.int32], hidden_at: NDArray[np.int32], step: int) -> None:
    """Count the hidden edges at both ends of every hidden triple; a hidden self-loop counts twice."""
    for i in range(len(heads)):
        hidden_at[heads[i]] += step
        hidden_at[tails[i]] += step


@kernel
def log_degree_change(
    graph: Adjacency, heads: NDArray[np.int32], tails: NDArray[np.int32], hidden_at: NDArray[np.int32]
) -> float:
    """How the sum of log(degree + 1) over all entities changes when the hidden triples go."""
    change = 0.0
    for ends in (heads, tails):
        for entity in ends:
            hidden_count = hidden_at[entity]
            if hidden_count > 0:
                degree = graph.offsets[entity + 1] - graph.offsets[entity]
                change += np.log(degree - hidden_count + 1.0) - np.log(degree + 1.0)
                hidden_at[entity] = -hidden_count  # counted
    for ends in (heads, tails):
        for entity in ends:
            hidden_at[entity] = abs(hidden_at[entity])
    return change


@kernel
def _spread(
    graph: Adjacency,
    hidden: NDArray[np.int32],
    hidden_at: NDArray[np.int32],
    distances: NDArray[np.int8],
    ball: NDArray[np.int32],
    begin: int,
    end: int,
) -> int:
    """Append to the ball the neighbours of its members begin … end that it does not hold yet."""
    count = end
    for i in range(begin, end):
        entity = ball[i]
        depth = distances[entity] + 1
        checked = hidden_at[entity] > 0
        for entry in range(graph.offsets[entity], graph.offsets[entity + 1]):
            neighbour = graph.tails[entry]
            if distances[neighbour] >= 0 or (checked and _is_hidden(graph, hidden, entry)):
                continue
            distances[neighbour] = depth
            ball[count] = neighbour
            count += 1
    return count


@kernel
def _edges_ahead(graph: Adjacency, ball: NDArray[np.int32], begin: int, end: int) -> int:
    total = 0
    for i in range(begin, end):
        total += graph.offsets[ball[i] + 1] - graph.offsets[ball[i]]
    return total


@kernel
def _start_cones(scratch: Scratch, head: int, candidates: NDArray[np.int64]) -> None:
    """The head alone on one side, every candidate once on the other."""
    ball, levels = scratch.ball, scratch.levels
    scratch.ahead[head] = 0
    ball[0, 0] = head
    levels[0, 0], levels[0, 1] = 0, 1
    levels[1, 0], levels[1, 1] = 0, 0
    for candidate in candidates:
        if scratch.behind[candidate] < 0:
            scratch.behind[candidate] = 0
            ball[1, levels[1, 1]] = candidate
            levels[1, 1] += 1


@kernel
def grow_cones(
    graph: Adjacency,
    hidden: NDArray[np.int32],
    scratch: Scratch,
    head: int,
    candidates: NDArray[np.int64],
    layers: int,
    meeting: int,
) -> int:
    """Search from both ends until the depths sum to L; the depth at which the cones meet.

    A meeting depth below 0 is chosen by cost: the cone with fewer edges ahead grows next.
    """
    _start_cones(scratch, head, candidates)
    ball, levels = scratch.ball, scratch.levels
    forward, backward = 0, 0
    while forward + backward < layers:
        begin, end = levels[0, forward], levels[0, forward + 1]
        other_begin, other_end = levels[1, backward], levels[1, backward + 1]
        if meeting >= 0:
            go_forward = forward < meeting
        else:
            ahead = _edges_ahead(graph, ball[0], begin, end)
            go_forward = ahead <= _edges_ahead(graph, ball[1], other_begin, other_end)
        if go_forward:
            forward += 1
            levels[0, forward + 1] = _spread(graph, hidden, scratch.hidden_at, scratch.ahead, ball[0], begin, end)
        else:
            backward += 1
            levels[1, backward + 1] = _spread(
                graph, hidden, scratch.hidden_at, scratch.behind, ball[1], other_begin, other_end
            )
    return forward


@kernel
def _step(
    graph: Adjacency,
    hidden: NDArray[np.int32],
    scratch: Scratch,
    known: NDArray[np.int32],
    found: NDArray[np.int32],
    distances: NDArray[np.int8],
    limit: int,
    most: int,
) -> int:
    """The slots of a neighbouring layer: the known ones and their neighbours, within `limit` hops of the other end.

    There are at most `most` entities within this limit; the search ends when it has found so many.
    """
    count = 0
    slot_of = scratch.slot_of
    for entity in known:
        if count == most:
            break
        if 0 <= distances[entity] <= limit and slot_of[entity] < 0:
            slot_of[entity] = 0
            found[count] = entity
            count += 1
        checked = scratch.hidden_at[entity] > 0
        for entry in range(graph.offsets[entity], graph.offsets[entity + 1]):
            neighbour = graph.tails[entry]
            if distances[neighbour] < 0 or distances[neighbour] > limit or slot_of[neighbour] >= 0:
                continue
            if checked and _is_hidden(graph, hidden, entry):
                continue
            slot_of[neighbour] = 0
            found[count] = neighbour
            count += 1
    for i in range(count):
        slot_of[found[i]] = -1
    return count


@kernel
def select_members(
    graph: Adjacency, hidden: NDArray[np.int32], scratch: Scratch, layers: int, meeting: int, sizes: NDArray[np.int64]
) -> None:
    """Fill `members`: layer l keeps who is within l hops of the head and within L − l of a candidate."""
    members, levels = scratch.members, scratch.levels
    count = 0
    for i in range(levels[1, layers - meeting + 1]):
        entity = scratch.ball[1, i]
        if scratch.ahead[entity] >= 0:
            members[meeting, count] = entity
            count += 1
    sizes[meeting] = count
    for layer in range(meeting - 1, -1, -1):
        known = members[layer + 1, : sizes[layer + 1]]
        sizes[layer] = _step(graph, hidden, scratch, known, members[layer], scratch.ahead, layer, levels[0, layer + 1])
    for layer in range(meeting + 1, layers + 1):
        known = members[layer - 1, : sizes[layer - 1]]
        limit = layers - layer
        sizes[layer] = _step(graph, hidden, scratch, known, members[layer], scratch.behind, limit, levels[1, limit + 1])


@kernel
def select_everything(scratch: Scratch, layers: int, sizes: NDArray[np.int64]) -> None:
    """Fill `members` for ranking: layer l keeps everybody within l hops of the head."""
    for layer in range(layers + 1):
        sizes[layer] = scratch.levels[0, layer + 1]
        scratch.members[layer, : sizes[layer]] = scratch.ball[0, : sizes[layer]]


@kernel
def list_edges(
    graph: Adjacency,
    hidden: NDArray[np.int32],
    scratch: Scratch,
    layer: int,
    size: int,
    buffers: Buffers,
    first_slot: int,
    first_edge: int,
) -> int:
    """Write one query's slots of one layer and their edges from `place`, the layer before; the end of the edges."""
    slots, edges = buffers.slots, buffers.edges
    count = first_edge
    turned = -graph.relation_count
    for i in range(size):
        entity = scratch.members[layer, i]
        slot = first_slot + i
        hidden_count = scratch.hidden_at[entity]
        begin, end = graph.offsets[entity], graph.offsets[entity + 1]
        slots.entities[slot] = entity
        slots.previous[slot] = scratch.slot_of[entity]
        slots.degrees[slot] = end - begin - hidden_count
        start = count
        for entry in range(begin, end if layer > 0 else begin):
            source = scratch.slot_of[graph.tails[entry]]
            relation = graph.relations[entry]
            edges.sources[count] = source  # overwritten by the next edge unless it counts: cheaper than a branch
            edges.relations[count] = relation + (graph.relation_count if relation < graph.relation_count else turned)
            edges.entries[count] = entry
            count += source >= 0 and not (hidden_count > 0 and _is_hidden(graph, hidden, entry))
        slots.edge_counts[slot] = count - start
    return count


@kernel
def set_places(scratch: Scratch, layer: int, size: int, clear: bool) -> None:
    """Number the slots of a layer, or forget the numbers."""
    for i in range(size):
        scratch.slot_of[scratch.members[layer, i]] = -1 if clear else i


@kernel
def clear_cones(scratch: Scratch, forward: int, backward: int) -> None:
    """Forget the distances of the query just planned."""
    for i in range(scratch.levels[0, forward + 1]):
        scratch.ahead[scratch.ball[0, i]] = -1
    for i in range(scratch.levels[1, backward + 1]):
        scratch.behind[scratch.ball[1, i]] = -1
