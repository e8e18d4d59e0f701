"""Kernels of the plan, first half: how far entities are from a query's head and from its candidates.

For one query, breadth-first search runs forward from the head and backward from the candidates; the side with
fewer edges ahead of it goes on, until both depths sum to L. All arrays are marked while a query is planned and
unmarked along the same lists afterwards, so the work is linear in what a query touches.
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
    fan_in: int  # an update lists at most so many edges, drawn at random; 0: all
    keys: NDArray[np.uint64]  # [B] what a query's draws depend on, besides layer and entity


class Scratch(NamedTuple):
    """Arrays over entities, reused from query to query; clean (−1 or 0) between two queries."""

    ahead: NDArray[np.int8]  # [N] hops from the head, −1 beyond the forward cone
    behind: NDArray[np.int8]  # [N] hops to the nearest candidate, −1 beyond the backward cone
    slot_of: NDArray[np.int32]  # [N] slot of an entity in the layer at hand, −1 without one
    hidden_at: NDArray[np.int32]  # [N] hidden edges at an entity
    hidden: NDArray[np.bool_]  # [E] whether a triple is hidden
    ball: NDArray[np.int32]  # [2, N] entities met going forward, and backward, in order
    levels: NDArray[np.int64]  # [2, L + 2] where each depth begins in `ball`
    members: NDArray[np.int32]  # [L + 1, N] entities of every layer


@kernel
def is_hidden(graph: Adjacency, scratch: Scratch, entry: int) -> bool:
    """Whether the query at hand must not see an edge; only edges at entities with hidden ones need to be asked."""
    triple = graph.triples[entry]
    return bool(scratch.hidden[triple if triple < graph.triple_count else triple - graph.triple_count])


@kernel
def mark_hidden(graph: Adjacency, hidden: NDArray[np.int32], scratch: Scratch, forget: bool) -> None:
    """Mark the hidden triples and count them at both ends, or undo it; a hidden self-loop counts twice."""
    step = -1 if forget else 1
    for triple in hidden:
        scratch.hidden[triple] = not forget
        scratch.hidden_at[graph.ends[triple, 0]] += step
        scratch.hidden_at[graph.ends[triple, 2]] += step


@kernel
def log_degree_change(graph: Adjacency, hidden: NDArray[np.int32], hidden_at: NDArray[np.int32]) -> float:
    """How the sum of log(degree + 1) over all entities changes when the hidden triples go."""
    change = 0.0
    for triple in hidden:
        for side in (0, 2):
            entity = graph.ends[triple, side]
            hidden_count = hidden_at[entity]
            if hidden_count > 0:
                degree = graph.offsets[entity + 1] - graph.offsets[entity]
                change += np.log(degree - hidden_count + 1.0) - np.log(degree + 1.0)
                hidden_at[entity] = -hidden_count  # counted
    for triple in hidden:
        for side in (0, 2):
            hidden_at[graph.ends[triple, side]] = abs(hidden_at[graph.ends[triple, side]])
    return change


@kernel
def _spread(
    graph: Adjacency, scratch: Scratch, distances: NDArray[np.int8], ball: NDArray[np.int32], begin: int, end: int
) -> int:
    """Append to the ball the neighbours of its members begin … end that it does not hold yet."""
    count = end
    for i in range(begin, end):
        entity = ball[i]
        depth = distances[entity] + 1
        checked = scratch.hidden_at[entity] > 0
        for entry in range(graph.offsets[entity], graph.offsets[entity + 1]):
            neighbour = graph.tails[entry]
            if distances[neighbour] >= 0 or (checked and is_hidden(graph, scratch, entry)):
                continue
            distances[neighbour] = depth
            ball[count] = neighbour
            count += 1
        if count == len(ball):
            break  # everybody is found
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
    graph: Adjacency, scratch: Scratch, head: int, candidates: NDArray[np.int64], steps: int, meeting: int
) -> int:
    """Search from both ends until the depths sum to `steps`; the depth of the cone around the head.

    A meeting depth below 0 is chosen by cost: the cone with fewer edges ahead grows next.
    """
    _start_cones(scratch, head, candidates)
    ball, levels = scratch.ball, scratch.levels
    forward, backward = 0, 0
    while forward + backward < steps:
        begin, end = levels[0, forward], levels[0, forward + 1]
        other_begin, other_end = levels[1, backward], levels[1, backward + 1]
        if meeting >= 0:
            go_forward = forward < meeting
        else:
            ahead = _edges_ahead(graph, ball[0], begin, end)
            go_forward = ahead <= _edges_ahead(graph, ball[1], other_begin, other_end)
        if go_forward:
            forward += 1
            levels[0, forward + 1] = _spread(graph, scratch, scratch.ahead, ball[0], begin, end)
        else:
            backward += 1
            levels[1, backward + 1] = _spread(graph, scratch, scratch.behind, ball[1], other_begin, other_end)
    return forward


@kernel
def clear_cones(scratch: Scratch, forward: int, backward: int) -> None:
    """Forget the distances of the query just planned."""
    for i in range(scratch.levels[0, forward + 1]):
        scratch.ahead[scratch.ball[0, i]] = -1
    for i in range(scratch.levels[1, backward + 1]):
        scratch.behind[scratch.ball[1, i]] = -1
