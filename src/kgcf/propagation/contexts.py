"""Contexts: k(v), the shares of the relations among v's visible edges, once per distinct row (DESIGN 3).

An entity has one histogram for all queries that hide none of its edges, and one more for every query that
does. So a batch needs about as many rows as it has distinct entities, never B · N of them.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from kgcf.compiled import kernel
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hidden import HiddenTriples


@dataclass(frozen=True, eq=False)
class Contexts:
    """U distinct histograms, as the relations that occur in each and their shares; `rows` says whose they are."""

    offsets: NDArray[np.int64]  # [U + 1]
    relations: NDArray[np.int32]  # [C] in 0 … 2R − 1
    shares: NDArray[np.float64]  # [C] sums to 1 over each row that is not empty
    width: int  # 2R
    rows: NDArray[np.int64]  # […] the row of every pair (query, entity) asked for

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def dense(self, like: Tensor) -> Tensor:
        """[U, 2R] the histograms, in the precision and on the device of a tensor."""
        table = np.zeros((len(self), self.width))
        table[np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.relations] = self.shares
        return torch.from_numpy(table).to(like)

    def row_tensor(self, like: Tensor) -> Tensor:
        """[…] the rows as a tensor on the device of another."""
        return torch.from_numpy(self.rows).to(like.device)


def collect_contexts(
    graph: KnowledgeGraph, hidden: HiddenTriples | None, queries: ArrayLike, entities: ArrayLike
) -> Contexts:
    """The contexts of pairs (query, entity); queries count within the hidden sets, shapes broadcast."""
    asked, who = np.broadcast_arrays(np.asarray(queries, np.int64), np.asarray(entities, np.int64))
    touched = _touched_pairs(graph, hidden)
    keys = (asked * graph.entity_count + who).ravel()
    place = np.searchsorted(touched, keys)
    special = place < len(touched)
    special[special] = touched[place[special]] == keys[special]
    plain, plain_rows = np.unique(who.ravel()[~special], return_inverse=True)
    used, special_rows = np.unique(place[special], return_inverse=True)
    rows = np.empty(len(keys), np.int64)
    rows[~special] = plain_rows
    rows[special] = len(plain) + special_rows
    owners = np.concatenate([plain, touched[used] % graph.entity_count])
    seen_by = np.concatenate([np.full(len(plain), -1), touched[used] // graph.entity_count])
    return _histograms(graph, hidden, owners, seen_by, rows.reshape(who.shape))


def all_contexts(graph: KnowledgeGraph) -> Contexts:
    """The contexts of all entities where nothing is hidden, each distinct histogram once; rows[v] is entity v's."""
    everybody = np.arange(graph.entity_count)
    nobody = np.full(len(everybody), -1)
    single = _histograms(graph, None, everybody, nobody, everybody)
    marks = _mark_rows(single.offsets, single.relations, single.shares)
    _, first, rows = np.unique(marks, return_index=True, return_inverse=True)
    if not _equal_rows(single.offsets, single.relations, single.shares, first[rows]):
        return single  # two histograms with the same mark: as good as impossible, and still right
    return _histograms(graph, None, first, nobody[: len(first)], rows)


def _touched_pairs(graph: KnowledgeGraph, hidden: HiddenTriples | None) -> NDArray[np.int64]:
    """query · N + entity of every end of a hidden triple, ascending."""
    if hidden is None:
        return np.zeros(0, np.int64)
    queries = np.repeat(np.arange(len(hidden)), np.diff(hidden.offsets))[:, None]
    ends = graph.triples[hidden.triples][:, [0, 2]].astype(np.int64)
    return np.unique(queries * graph.entity_count + ends)


def _histograms(
    graph: KnowledgeGraph,
    hidden: HiddenTriples | None,
    owners: NDArray[np.int64],
    seen_by: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> Contexts:
    hidden_offsets = np.zeros(1, np.int64) if hidden is None else hidden.offsets
    hidden_triples = np.zeros(0, np.int32) if hidden is None else hidden.triples
    offsets, relations, shares = _count_relations(
        graph.offsets,
        graph.edge_relations,
        graph.edge_triples,
        max(len(graph), 1),
        hidden_offsets,
        hidden_triples,
        owners,
        seen_by,
    )
    return Contexts(offsets, relations, shares, 2 * graph.relation_count, rows)


@kernel
def _count_relations(
    row_offsets: NDArray[np.int64],
    edge_relations: NDArray[np.int32],
    edge_triples: NDArray[np.int32],
    triple_count: int,
    hidden_offsets: NDArray[np.int64],
    hidden_triples: NDArray[np.int32],
    owners: NDArray[np.int64],
    seen_by: NDArray[np.int64],  # the query whose hidden set applies, −1: none
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Runs of equal relations in every owner's row of edges, which is sorted by relation."""
    room = 0
    for owner in owners:
        room += row_offsets[owner + 1] - row_offsets[owner]
    offsets = np.zeros(len(owners) + 1, np.int64)
    relations = np.empty(room, np.int32)
    shares = np.empty(room, np.float64)
    count = 0
    for i in range(len(owners)):
        start, degree = count, 0
        query = seen_by[i]
        hidden = hidden_triples[hidden_offsets[query] : hidden_offsets[query + 1]] if query >= 0 else hidden_triples[:0]
        for entry in range(row_offsets[owners[i]], row_offsets[owners[i] + 1]):
            triple = edge_triples[entry] % triple_count
            place = np.searchsorted(hidden, triple)
            if place < len(hidden) and hidden[place] == triple:
                continue
            degree += 1
            if count == start or relations[count - 1] != edge_relations[entry]:
                relations[count] = edge_relations[entry]
                shares[count] = 0.0
                count += 1
            shares[count - 1] += 1.0
        shares[start:count] /= max(degree, 1)
        offsets[i + 1] = count
    return offsets, relations[:count].copy(), shares[:count].copy()


@kernel
def _mark_rows(
    offsets: NDArray[np.int64], relations: NDArray[np.int32], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A number for every row that differs where rows differ: a sum over irrational multiples."""
    marks = np.zeros(len(offsets) - 1)
    for row in range(len(marks)):
        for i in range(offsets[row], offsets[row + 1]):
            marks[row] += shares[i] * np.sin(1.0 + relations[i]) + np.sqrt(2.0 + relations[i])
    return marks


@kernel
def _equal_rows(
    offsets: NDArray[np.int64],
    relations: NDArray[np.int32],
    shares: NDArray[np.float64],
    others: NDArray[np.int64],
) -> bool:
    """Whether every row equals the row it is said to equal."""
    for row in range(len(others)):
        begin, other = offsets[row], offsets[others[row]]
        length = offsets[row + 1] - begin
        if offsets[others[row] + 1] - other != length:
            return False
        for i in range(length):
            if relations[begin + i] != relations[other + i] or shares[begin + i] != shares[other + i]:
                return False
    return True
