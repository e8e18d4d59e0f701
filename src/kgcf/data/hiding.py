"""The hidden set: which triples of the observed graph a query must not see (ARCHITECTURE.md).

A training query asks for a triple that is in the graph. Every stage (messages, degrees, contexts,
treatments) works on the graph minus this set, so that nothing betrays the answer.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.machine.compiled import kernel

Remove = Literal["triple", "pair"]  # what a question about a triple of the graph hides


@dataclass(frozen=True, eq=False)
class HiddenTriples:
    """For each of B queries the triples it must not see; a hidden triple hides its inverse edge too."""

    offsets: NDArray[np.int64]  # [B + 1] first entry of every query
    triples: NDArray[np.int32]  # [H] indices into the graph's triples, ascending within a query

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, query: int) -> NDArray[np.int32]:
        """The hidden triples of one query."""
        return self.triples[self.offsets[query] : self.offsets[query + 1]]


def hide_nothing(query_count: int) -> HiddenTriples:
    """Queries about triples that are not in the graph: evaluation and prediction."""
    return HiddenTriples(np.zeros(query_count + 1, np.int64), np.zeros(0, np.int32))


def hide_by_rule(
    graph: KnowledgeGraph,
    heads: ArrayLike,
    relations: ArrayLike,
    candidates: ArrayLike,
    remove: Remove,
    answers: int = 1,
) -> HiddenTriples:
    """What questions (h, r, ?) with candidates [B, K], `answers` answers first, must not see: this place decides."""
    if remove == "pair":
        return hide_pairs(graph, heads, candidates)
    asked = np.asarray(candidates)[:, :answers]
    if answers == 1:
        return hide_triples(graph, heads, relations, asked[:, 0])
    sources, kinds = (np.repeat(np.asarray(ids), answers) for ids in (heads, relations))
    single = hide_triples(graph, sources, kinds, asked.reshape(-1))
    return _without_repeats(single.offsets[::answers], single.triples)


def hide_known(
    graph: KnowledgeGraph, heads: ArrayLike, relations: ArrayLike, tails: ArrayLike, remove: Remove
) -> HiddenTriples:
    """What questions about single triples must not see: nothing where the graph does not have the triple.

    Such a question is asked as ranking asks it, with every link in sight.
    """
    asked = [np.asarray(part, dtype=np.int64) for part in (heads, relations, tails)]
    hidden = hide_by_rule(graph, asked[0], asked[1], asked[2][:, None], remove)
    sizes = np.diff(hidden.offsets)
    known = graph.contains(np.stack(asked, axis=1))
    offsets = np.concatenate([[0], np.cumsum(np.where(known, sizes, 0))]).astype(np.int64)
    return HiddenTriples(offsets, hidden.triples[np.repeat(known, sizes)])


def hide_triples(graph: KnowledgeGraph, heads: ArrayLike, relations: ArrayLike, tails: ArrayLike) -> HiddenTriples:
    """`remove = triple`: hide (h, r, t) itself where the graph has it; r may be an inverse relation."""
    edges = graph.find_edges(heads, relations, tails)
    offsets = np.zeros(len(edges) + 1, np.int64)
    np.cumsum(edges >= 0, out=offsets[1:])
    return HiddenTriples(offsets, _triples_of_edges(graph, edges[edges >= 0]))


def hide_pairs(graph: KnowledgeGraph, heads: ArrayLike, candidates: ArrayLike) -> HiddenTriples:
    """`remove = pair`: hide every triple that links h with any of its candidates [B, K], in either direction.

    Candidates include the negatives: hiding only the positive's links would teach "linked means false".
    """
    sources = np.ascontiguousarray(heads, dtype=np.int64)
    table = np.ascontiguousarray(candidates, dtype=np.int64)
    if table.shape[1] == 1:  # a link is listed at both ends: look at the one that has fewer, never at all of a hub's
        degrees, tails = np.diff(graph.offsets), table[:, 0]
        hub = degrees[tails] < degrees[sources]
        sources, table = np.where(hub, tails, sources), np.where(hub, sources, tails)[:, None]
    offsets, edges = _edges_to_candidates(graph.offsets, graph.edge_tails, sources, table, graph.entity_count)
    return _without_repeats(offsets, _triples_of_edges(graph, edges))


def _triples_of_edges(graph: KnowledgeGraph, edges: NDArray[np.int64]) -> NDArray[np.int32]:
    hidden: NDArray[np.int32] = graph.edge_triples[edges] % np.int32(max(len(graph), 1))
    return hidden


def _without_repeats(offsets: NDArray[np.int64], triples: NDArray[np.int32]) -> HiddenTriples:
    """Sort each query's triples; a self-loop of h was met twice, as forward and as inverse edge."""
    queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    distinct = np.unique((queries << 32) | triples)  # one number that orders like (query, triple)
    counts = np.bincount(distinct >> 32, minlength=len(offsets) - 1)
    return HiddenTriples(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), (distinct & 0xFFFFFFFF).astype(np.int32)
    )


@kernel
def _edges_to_candidates(
    row_offsets: NDArray[np.int64],
    edge_tails: NDArray[np.int32],
    heads: NDArray[np.int64],
    candidates: NDArray[np.int64],
    entity_count: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges from every head to one of its candidates; stamps mark the candidates of the query at hand."""
    stamps = np.full(entity_count, -1, np.int64)
    offsets = np.zeros(len(heads) + 1, np.int64)
    found, count = np.empty(max(64, 4 * len(heads)), np.int64), np.int64(0)
    for b in range(len(heads)):
        for k in range(candidates.shape[1]):
            stamps[candidates[b, k]] = b
        for edge in range(row_offsets[heads[b]], row_offsets[heads[b] + 1]):
            if stamps[edge_tails[edge]] == b:
                found = _with_room(found, count)
                found[count] = edge
                count += 1
        offsets[b + 1] = count
    return offsets, found[:count].copy()


@kernel
def _with_room(found: NDArray[np.int64], count: np.int64) -> NDArray[np.int64]:
    """The same with room for one more."""
    if count < len(found):
        return found
    wider = np.empty(2 * count, np.int64)
    wider[:count] = found
    return wider
