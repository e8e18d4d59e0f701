"""Second-order random walks on A_r, as node2vec defines them (p, q), compiled."""

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.relation_graphs import RelationGraph
from kgcf.machine.compiled import kernel


def walk_round(
    graph: RelationGraph, length: int, p: float, q: float, generator: np.random.Generator
) -> NDArray[np.int32]:
    """[n, length] one walk from every entity of A_r, in random order, in local ids.

    From v, reached from u, the walk goes back to u with weight 1/p, to a common neighbour of u and v
    with weight 1, elsewhere with weight 1/q. Every entity of A_r has a neighbour, so no walk ends early.
    """
    starts = generator.permutation(len(graph))
    state = generator.integers(2**64, dtype=np.uint64)
    if p == 1 and q == 1:
        return _first_order(graph.offsets, graph.neighbours, starts, length, state)
    return _second_order(graph.offsets, graph.neighbours, starts, length, 1 / p, 1 / q, state)


@kernel
def _scrambled(state: np.uint64) -> np.uint64:
    """The output function of splitmix64; the caller advances the state by its odd constant."""
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def _uniform(state: np.uint64) -> float:
    """A float in [0, 1) with 53 random bits."""
    return float(_scrambled(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _first_order(
    offsets: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    starts: NDArray[np.int64],
    length: int,
    state: np.uint64,
) -> NDArray[np.int32]:
    step = np.uint64(0x9E3779B97F4A7C15)
    walks = np.empty((len(starts), length), np.int32)
    for w in range(len(starts)):
        here = starts[w]
        walks[w, 0] = here
        for i in range(1, length):
            state += step
            begin = offsets[here]
            here = np.int64(neighbours[begin + np.int64(_uniform(state) * (offsets[here + 1] - begin))])
            walks[w, i] = here
    return walks


@kernel
def _linked(offsets: NDArray[np.int64], neighbours: NDArray[np.int32], source: np.int64, target: np.int64) -> bool:
    row = neighbours[offsets[source] : offsets[source + 1]]
    position = np.searchsorted(row, target)
    return bool(position < len(row) and row[position] == target)


@kernel
def _second_order(
    offsets: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    starts: NDArray[np.int64],
    length: int,
    back: float,
    away: float,
    state: np.uint64,
) -> NDArray[np.int32]:
    """Exact by rejection: propose a neighbour uniformly, accept it with its weight over the largest weight."""
    step = np.uint64(0x9E3779B97F4A7C15)
    largest = max(back, 1.0, away)
    walks = np.empty((len(starts), length), np.int32)
    for w in range(len(starts)):
        before, here = np.int64(-1), starts[w]
        walks[w, 0] = here
        for i in range(1, length):
            begin, count = offsets[here], offsets[here + 1] - offsets[here]
            while True:
                state += step
                proposed = np.int64(neighbours[begin + np.int64(_uniform(state) * count)])
                if before < 0 or count == 1:
                    break
                weight = away
                if proposed == before:
                    weight = back
                elif away != 1.0 and _linked(offsets, neighbours, before, proposed):
                    weight = 1.0
                state += step
                if _uniform(state) * largest < weight:
                    break
            before, here = here, proposed
            walks[w, i] = here
    return walks
