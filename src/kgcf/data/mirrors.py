"""Facts that give each other away: symmetric facts, inverse relations, duplicate relations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph

SHARE = 0.8  # of the smaller relation's facts that must be mirrored for two relations to count as mirrors


@dataclass(frozen=True)
class Mirror:
    """Facts of `first` stand again as facts of `second`, turned round or in the same direction."""

    first: int
    second: int
    turned: bool
    count: int  # facts of `first` that are mirrored
    share: float  # of the facts of the smaller relation

    @property
    def kind(self) -> str:
        """Symmetric, inverse or duplicate."""
        if self.first == self.second:
            return "symmetric"
        return "inverse" if self.turned else "duplicate"


def find_mirrors(graph: KnowledgeGraph) -> list[Mirror]:
    """Every symmetric relation (with any mirrored fact), and every pair of relations that mirror each other."""
    counts = np.bincount(graph.triples[:, 1], minlength=graph.relation_count)
    found: list[Mirror] = []
    for turned in (True, False):
        links = _mirrored(graph, turned)
        relations = graph.triples[links, 1]
        pairs, totals = np.unique(np.sort(relations, axis=1), axis=0, return_counts=True)
        for (first, second), total in zip(pairs.tolist(), totals.tolist(), strict=True):
            mirrored = total if first != second else 2 * total
            share = mirrored / min(counts[first], counts[second])
            if first == second or share >= SHARE:
                found.append(Mirror(first, second, turned, mirrored, float(share)))
    return found


def mirror_groups(graph: KnowledgeGraph, mirrors: list[Mirror]) -> NDArray[np.int64]:
    """[E] a group id for every triple; facts that mirror each other are in one group."""
    chosen = {(m.first, m.second, m.turned) for m in mirrors}
    joined: list[NDArray[np.int64]] = [np.zeros((0, 2), dtype=np.int64)]
    for turned in (True, False):
        links = _mirrored(graph, turned)
        relations = np.sort(graph.triples[links, 1], axis=1)
        pairs, inverse = np.unique(relations, axis=0, return_inverse=True)
        wanted = np.array([(a, b, turned) in chosen for a, b in pairs.tolist()], dtype=bool)
        joined.append(links[wanted[inverse.reshape(-1)]])
    edges = np.concatenate(joined)
    from scipy.sparse import coo_matrix  # slow to import, and only needed to split
    from scipy.sparse.csgraph import connected_components

    matrix = coo_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(len(graph), len(graph)))
    groups: NDArray[np.int64] = connected_components(matrix, directed=False)[1].astype(np.int64)
    return groups


def _mirrored(graph: KnowledgeGraph, turned: bool) -> NDArray[np.int64]:
    """[M, 2] pairs e < f of triples with the same ends, turned round or in the same direction; no self-loops."""
    heads, tails = graph.triples[:, 0].astype(np.int64), graph.triples[:, 2].astype(np.int64)
    low, high = np.minimum(heads, tails), np.maximum(heads, tails)
    proper = np.flatnonzero(heads != tails)
    keys = low[proper] * graph.entity_count + high[proper]
    order = proper[np.argsort(keys, kind="stable")]
    sorted_keys = np.sort(keys)
    found = [np.zeros((0, 2), dtype=np.int64)]
    near, gap = np.arange(len(order)), 0
    while len(near):  # pairs at a growing distance within a run of equal keys
        gap += 1
        near = near[near < len(order) - gap]
        near = near[sorted_keys[near + gap] == sorted_keys[near]]
        first, second = order[near], order[near + gap]
        same = heads[first] == heads[second]
        found.append(np.stack([first, second], axis=1)[same != turned])
    return np.concatenate(found)
