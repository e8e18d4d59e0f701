"""Kernels of the path search: best walks forward by dynamic programming, best paths backward by best-first search."""

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel

NOTHING = -np.inf


class Slots(NamedTuple):
    """A lattice as the kernels take it."""

    entities: NDArray[np.int32]  # [S]
    offsets: NDArray[np.int64]  # [S + 1] first edge that enters a slot
    sources: NDArray[np.int64]  # [M] slot of the layer before
    start: int  # the head's slot of layer 0, −1 without one
    head: int
    tail: int


@kernel
def best_walks(slots: Slots, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """[S] the largest weight of a walk from the start to every slot, −∞ where there is none.

    Walks neither return to the head nor go on from the tail; they may meet other entities again, so the value
    is an upper bound for paths.
    """
    best = np.full(len(slots.entities), NOTHING)
    if slots.start < 0 or slots.head == slots.tail:
        return best
    best[slots.start] = 0.0
    for slot in range(len(slots.entities)):
        if slots.entities[slot] == slots.head:
            continue
        for edge in range(slots.offsets[slot], slots.offsets[slot + 1]):
            source = slots.sources[edge]
            if slots.entities[source] != slots.tail and best[source] + weights[edge] > best[slot]:
                best[slot] = best[source] + weights[edge]
    return best


@kernel
def count_walks(slots: Slots) -> NDArray[np.float64]:
    """[S] how many walks lead from the start to every slot, neither back to the head nor on from the tail."""
    counts = np.zeros(len(slots.entities))
    if slots.start < 0 or slots.head == slots.tail:
        return counts
    counts[slots.start] = 1.0
    for slot in range(len(slots.entities)):
        if slots.entities[slot] == slots.head:
            continue
        for edge in range(slots.offsets[slot], slots.offsets[slot + 1]):
            if slots.entities[slots.sources[edge]] != slots.tail:
                counts[slot] += counts[slots.sources[edge]]
    return counts


class Partials(NamedTuple):
    """Partial paths, each the end of a path: from a slot to the tail, as a tree that grows from the tail."""

    slots: NDArray[np.int64]  # where the partial path begins
    parents: NDArray[np.int64]  # the partial path that is one edge shorter, −1: none
    edges: NDArray[np.int64]  # its first edge
    gains: NDArray[np.float64]  # its weight
    lengths: NDArray[np.int64]  # of the complete path, which decides the layer of the tail
    finished: NDArray[np.float64]  # [P] the weights of the best complete paths met so far, ascending


Promises = list[tuple[float, int]]  # a heap of (−promise, −partial path): at equal promise, the newest first


@kernel
def search_paths(
    slots: Slots,
    weights: NDArray[np.float64],
    best: NDArray[np.float64],
    goals: NDArray[np.int64],
    top: int,
    averaged: bool,
    limit: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
    """The `top` best simple paths: edges [P, L] padded with −1, lengths [P], and a bound for what was left out.

    The promise of a partial path is its own weight plus that of the best walk to where it begins, so partial
    paths taken by falling promise become complete paths by falling weight. The bound is −∞ if nothing
    better can have been missed; otherwise it is the largest promise that was not followed.
    """
    numbers = np.empty((4, limit), np.int64)
    partials = Partials(numbers[0], numbers[1], numbers[2], np.empty(limit), numbers[3], np.full(top, NOTHING))
    heap = [(0.0, 0) for _ in range(0)]
    count = _begin(partials, heap, best, goals, averaged)
    edges, lengths = np.full((top, len(goals) - 1), -1, np.int64), np.zeros(top, np.int64)
    found, bound = 0, NOTHING
    while len(heap) and found < top:
        promise, node = heapq.heappop(heap)
        slot = partials.slots[-node]
        if slot == slots.start:
            lengths[found] = _trace(partials, -node, edges[found])
            found += 1
        elif count + slots.offsets[slot + 1] - slots.offsets[slot] > limit:
            bound = max(bound, -promise)
        else:
            count = _extend(slots, weights, best, averaged, partials, heap, -node, count)
    return edges[:found], lengths[:found], bound


@kernel
def _begin(
    partials: Partials, heap: Promises, best: NDArray[np.float64], goals: NDArray[np.int64], averaged: bool
) -> int:
    """One empty partial path for every layer in which a walk meets the tail."""
    count = 0
    for length in range(1, len(goals)):
        if goals[length] >= 0 and best[goals[length]] > NOTHING:
            partials.slots[count], partials.lengths[count] = goals[length], length
            partials.parents[count], partials.edges[count] = -1, -1
            partials.gains[count] = 0.0
            heapq.heappush(heap, (-best[goals[length]] / (length if averaged else 1), -count))
            count += 1
    return count


@kernel
def _extend(
    slots: Slots,
    weights: NDArray[np.float64],
    best: NDArray[np.float64],
    averaged: bool,
    partials: Partials,
    heap: Promises,
    node: int,
    count: int,
) -> int:
    """Put every edge in front of a partial path that keeps it simple and promises enough; the new count."""
    slot, length, finished = partials.slots[node], partials.lengths[node], partials.finished
    for edge in range(slots.offsets[slot], slots.offsets[slot + 1]):
        source = slots.sources[edge]
        gain = partials.gains[node] + weights[edge]
        promise = (gain + best[source]) / (length if averaged else 1)
        if best[source] == NOTHING or promise < finished[0]:
            continue
        if _visits(partials, node, slots.entities, slots.entities[source]):
            continue
        partials.slots[count], partials.lengths[count] = source, length
        partials.parents[count], partials.edges[count] = node, edge
        partials.gains[count] = gain
        heapq.heappush(heap, (-promise, -count))
        count += 1
        if source == slots.start:
            finished[0] = promise
            finished.sort()
    return count


@kernel
def _visits(partials: Partials, node: int, entities: NDArray[np.int32], entity: int) -> bool:
    """Whether a partial path visits an entity; the tail is always visited."""
    while node >= 0:
        if entities[partials.slots[node]] == entity:
            return True
        node = partials.parents[node]
    return False


@kernel
def _trace(partials: Partials, node: int, edges: NDArray[np.int64]) -> int:
    """Write the edges of a complete path from head to tail; their number."""
    length = 0
    while partials.parents[node] >= 0:
        edges[length] = partials.edges[node]
        length += 1
        node = partials.parents[node]
    return length


@kernel
def draw_path(slots: Slots, counts: NDArray[np.float64], goal: int, draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """[l] the edges of the first of several uniform walks that visits no entity twice; empty if none does.

    `draws` [T, l] uniform in [0, 1): T walks of l edges, drawn from the tail backwards in proportion to the walks
    behind every edge. Kept only if simple, a walk is uniform over the simple paths of its length.
    """
    length = draws.shape[1]
    path, seen = np.empty(length, np.int64), np.empty(length + 1, np.int64)
    for trial in range(len(draws)):
        slot = goal
        seen[0] = slots.tail
        simple = True
        for step in range(length):
            edge = _choose_edge(slots, counts, slot, draws[trial, step])
            slot = slots.sources[edge]
            path[length - 1 - step] = edge
            for earlier in range(step + 1):
                if seen[earlier] == slots.entities[slot]:
                    simple = False
            if not simple:
                break
            seen[step + 1] = slots.entities[slot]
        if simple:
            return path
    return path[:0]


@kernel
def _choose_edge(slots: Slots, counts: NDArray[np.float64], slot: int, draw: float) -> int:
    """An edge that enters the slot, in proportion to the walks behind it."""
    left, chosen = draw * counts[slot], -1
    for edge in range(slots.offsets[slot], slots.offsets[slot + 1]):
        source = slots.sources[edge]
        behind = counts[source] if slots.entities[source] != slots.tail else 0.0
        if behind > 0.0:
            chosen = edge
            left -= behind
            if left < 0.0:
                break
    return chosen
