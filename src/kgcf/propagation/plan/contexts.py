"""Contexts: k(v), the shares of the relations among v's visible edges, once per distinct row.

An entity has one histogram for all queries that hide none of its edges, and one more for every query that
does. So a batch needs about as many rows as it has distinct entities, never B · N of them. A row lists the relations
that the entity has; the table [U, 2R] of all shares, nearly all zero, is never built.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
from kgcf.machine.compiled import kernel


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

    def project(self, weight: Tensor) -> Tensor:
        """[U, H] the histograms [U, 2R] times a weight [H, 2R]: sums of its columns over the relations that occur."""
        where = weight.device
        projected: Tensor = functional.embedding_bag(
            torch.from_numpy(self.relations.astype(np.int64)).to(where),
            weight.T.contiguous(),  # [H, 2R] → [2R, H]
            torch.from_numpy(self.offsets).to(where),
            mode="sum",
            per_sample_weights=torch.from_numpy(self.shares).to(weight),
            include_last_offset=True,
        )
        return projected

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
    position = np.searchsorted(touched, keys)
    special = position < len(touched)
    special[special] = touched[position[special]] == keys[special]
    plain, plain_rows = np.unique(who.ravel()[~special], return_inverse=True)
    used, special_rows = np.unique(position[special], return_inverse=True)
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
    first, rows = _group_rows(single.offsets, single.relations, single.shares, single.shares.view(np.int64))
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
            position = np.searchsorted(hidden, triple)
            if position < len(hidden) and hidden[position] == triple:
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
def _equal_rows(
    offsets: NDArray[np.int64], relations: NDArray[np.int32], shares: NDArray[np.float64], one: int, other: int
) -> bool:
    """Whether two rows hold the same relations with the same shares."""
    begin, start = offsets[one], offsets[other]
    length = offsets[one + 1] - begin
    if offsets[other + 1] - start != length:
        return False
    for i in range(length):
        if relations[begin + i] != relations[start + i] or shares[begin + i] != shares[start + i]:
            return False
    return True


@kernel
def _group_rows(
    offsets: NDArray[np.int64],
    relations: NDArray[np.int32],
    shares: NDArray[np.float64],
    bits: NDArray[np.int64],  # the same shares as integers
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of all rows that are equal, one per group, and the group of every row.

    A table of twice as many places as rows: a row starts at the place its numbers are mixed into and goes on until it
    finds a group that it equals, compared number by number, or an empty place.
    """
    count = len(offsets) - 1
    room = 2
    while room < 2 * count:
        room *= 2
    table = np.full(room, -1, np.int64)
    first, rows = np.empty(count, np.int64), np.empty(count, np.int64)
    groups = 0
    for row in range(count):
        mixed = np.int64(offsets[row + 1] - offsets[row])
        for i in range(offsets[row], offsets[row + 1]):
            mixed = (mixed ^ relations[i]) * np.int64(6364136223846793005)
            mixed = (mixed ^ bits[i] ^ (mixed >> 29)) * np.int64(1442695040888963407)
        position = (mixed ^ (mixed >> 32)) & (room - 1)
        while table[position] >= 0 and not _equal_rows(offsets, relations, shares, row, first[table[position]]):
            position = (position + 1) & (room - 1)
        if table[position] < 0:
            table[position] = groups
            first[groups] = row
            groups += 1
        rows[row] = table[position]
    return first[:groups].copy(), rows
