"""The kernel that applies a relation pattern to a graph: which pairs it links, and how many the relation links too."""

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel


@kernel
def apply_pattern(
    offsets: NDArray[np.int64],
    edge_relations: NDArray[np.int32],
    edge_tails: NDArray[np.int32],
    pattern: NDArray[np.int64],
    relation: int,
    heads: NDArray[np.int64],
    limit: int,
) -> tuple[int, int, int]:
    """Follow the pattern from every head: distinct pairs (x, z), those with an edge (x, relation, z), and heads done.

    Entities on the way differ from each other and from both ends. After `limit` steps no further head is begun.
    """
    length = len(pattern)
    entities, cursors, ends = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    seen = np.full(len(offsets) - 1, -1, np.int64)
    pairs, true, steps = 0, 0, 0
    for done in range(len(heads)):
        if steps >= limit:
            return pairs, true, done
        head = heads[done]
        depth = 0
        entities[0] = head
        cursors[0], ends[0] = _edges_of(offsets, edge_relations, head, pattern[0])
        while depth >= 0:
            if cursors[depth] == ends[depth]:
                depth -= 1
                continue
            entity = edge_tails[cursors[depth]]
            cursors[depth] += 1
            steps += 1
            if _among(entities, depth, entity):
                continue
            if depth < length - 1:
                depth += 1
                entities[depth] = entity
                cursors[depth], ends[depth] = _edges_of(offsets, edge_relations, entity, pattern[depth])
            elif seen[entity] != head:
                seen[entity] = head
                pairs += 1
                begin, end = _edges_of(offsets, edge_relations, head, relation)
                at = begin + np.searchsorted(edge_tails[begin:end], entity, "left")
                true += at < end and edge_tails[at] == entity
    return pairs, true, len(heads)


@kernel
def _edges_of(
    offsets: NDArray[np.int64], edge_relations: NDArray[np.int32], entity: int, relation: int
) -> tuple[int, int]:
    """The edges of one relation in the row of an entity: first, and behind the last."""
    begin, end = offsets[entity], offsets[entity + 1]
    row = edge_relations[begin:end]
    return begin + np.searchsorted(row, relation, "left"), begin + np.searchsorted(row, relation, "right")


@kernel
def _among(entities: NDArray[np.int64], depth: int, entity: int) -> bool:
    found = False
    for i in range(depth + 1):
        found |= entities[i] == entity
    return found
