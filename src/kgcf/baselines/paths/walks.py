"""Path types between the ends of triples, found by random walks from both ends that meet."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph

NONE = -1  # no further relation in a path
Path = tuple[int, ...]  # relations from head to tail, inverse ones as r + R


def find_paths(
    graph: KnowledgeGraph,
    relation: int,
    triples: NDArray[np.int64],
    length: int,
    walks: int,
    generator: np.random.Generator,
) -> Counter[Path]:
    """How many of the triples [S, 2] (head, tail) of a relation each path type of at most `length` edges joins.

    Walks from the head take all edges but the last, one edge from the tail meets them. The triple itself is not
    walked along, neither way.
    """
    heads, tails = (np.repeat(column, walks) for column in triples.T)
    inverse = int(graph.inverse(np.array(relation)))
    own = (heads, tails, relation, inverse)
    found: Counter[Path] = Counter()
    last, before_tail = _step(graph, tails, own, generator)  # an edge (tail, q, x) is the path's edge (x, q⁻¹, tail)
    last = np.where(last == NONE, NONE, graph.inverse(last))
    ends, relations = heads, np.zeros((len(heads), 0), dtype=np.int64)
    for _ in range(length):
        _count(found, _joined(ends, relations, before_tail, last, walks))
        taken, ends = _step(graph, ends, own, generator)
        relations = np.column_stack([relations, taken])
    return found


def _step(
    graph: KnowledgeGraph,
    at: NDArray[np.int64],
    own: tuple[NDArray[np.int64], NDArray[np.int64], int, int],
    generator: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A random edge of every walker: its relation and its end; NONE for one that has none, or met its own triple."""
    heads, tails, relation, inverse = own
    standing = at >= 0
    degrees = np.where(standing, graph.degrees[at], 0)
    edges = graph.offsets[at] + (generator.random(len(at)) * degrees).astype(np.int64)
    edges = np.minimum(edges, graph.edge_count - 1)
    taken, ends = graph.edge_relations[edges].astype(np.int64), graph.edge_tails[edges].astype(np.int64)
    along = (at == heads) & (taken == relation) & (ends == tails)
    back = (at == tails) & (taken == inverse) & (ends == heads)
    stopped = (degrees == 0) | along | back
    return np.where(stopped, NONE, taken), np.where(stopped, NONE, ends)


def _joined(
    ends: NDArray[np.int64],
    relations: NDArray[np.int64],
    before_tail: NDArray[np.int64],
    last: NDArray[np.int64],
    walks: int,
) -> NDArray[np.int64]:
    """[J, 1 + length] triple and relations of every walk from a head that meets an edge into its tail."""
    meet = (ends.reshape(-1, walks, 1) == before_tail.reshape(-1, 1, walks)) & (ends.reshape(-1, walks, 1) >= 0)
    triple, forward, backward = np.nonzero(meet)
    first = relations[triple * walks + forward]
    return np.column_stack([triple, first, last[triple * walks + backward]])


def _count(found: Counter[Path], joined: NDArray[np.int64]) -> None:
    """Count every path type once for every triple that it joins."""
    distinct = np.unique(joined, axis=0)[:, 1:]
    paths, counts = np.unique(distinct, axis=0, return_counts=True)
    for path, count in zip(paths.tolist(), counts.tolist(), strict=True):
        found[tuple(path)] += count
