"""What an epoch asks: passes, each one question (head, relation, ?) with one or more of its true answers.

A pass costs nearly the same whether one or eight of its answers are learned from. With `answers` = 1 an epoch visits
every train triple once, asked from one of its ends; with more it visits every triple from both ends.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph


@dataclass(frozen=True, eq=False)
class Asked:
    """The questions of B passes, and up to A answers of each."""

    triples: NDArray[np.int64]  # [B, A] the train triple behind every answer; the first again where there are fewer
    counts: NDArray[np.int64]  # [B] answers of every pass
    turned: NDArray[np.bool_]  # [B] whether heads are asked for

    def __len__(self) -> int:
        return len(self.triples)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """[B, A] where an answer stands, not its repetition."""
        standing: NDArray[np.bool_] = np.arange(self.triples.shape[1]) < self.counts[:, None]
        return standing


def ask_both_ways(triples: NDArray[np.int64]) -> Asked:
    """Single answers: ask for the tails of the first half and the heads of the second."""
    count = len(triples)
    return Asked(triples[:, None], np.ones(count, np.int64), np.arange(count) >= (count + 1) // 2)


class Passes:
    """The passes over a graph's triples with at most `answers` answers each; their order is drawn for every epoch."""

    def __init__(self, graph: KnowledgeGraph, answers: int) -> None:
        self._graph = graph
        self._answers = answers
        if answers > 1:
            self._groups = _group_edges(graph)  # [2E]
            self._begin, self._end = _divide(np.bincount(self._groups), answers)

    def __len__(self) -> int:
        """Passes of an epoch."""
        return len(self._graph) if self._answers == 1 else len(self._begin)

    def epoch(self, seed: int, epoch: int) -> "Epoch":
        """The passes of an epoch in their order; it depends on nothing but seed and epoch."""
        order = epoch_order(len(self), seed, epoch)
        if self._answers == 1:
            return Epoch(order, None, None, None)
        within = np.lexsort((stream(seed, epoch, 0).random(len(self._groups)), self._groups))
        return Epoch(order, self._graph.edge_triples[within].astype(np.int64), self._begin, self._end)


@dataclass(frozen=True, eq=False)
class Epoch:
    """One epoch's order of passes, and which answers meet in a pass."""

    order: NDArray[np.int64]  # [P]
    edges: NDArray[np.int64] | None  # [2E] triples, + E where asked for the head, by groups; None: single answers
    begin: NDArray[np.int64] | None  # [P] where in `edges` the answers of a pass begin
    end: NDArray[np.int64] | None  # [P]

    def take(self, positions: NDArray[np.int64]) -> Asked:
        """The passes at these positions of the order."""
        chosen = self.order[positions]
        if self.edges is None or self.begin is None or self.end is None:
            return ask_both_ways(chosen)
        begin, counts = self.begin[chosen], self.end[chosen] - self.begin[chosen]
        columns = np.arange(counts.max(initial=1))
        rows = np.where(columns < counts[:, None], columns, 0)
        found = self.edges[begin[:, None] + rows]
        triples = len(self.edges) // 2
        return Asked(found % triples, counts, found[:, 0] >= triples)


def epoch_order(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch visits its passes; it depends on nothing but seed and epoch."""
    return stream(seed, epoch).permutation(count)


def stream(seed: int, *position: int) -> np.random.Generator:
    """The random numbers of one place of a run (epoch, or epoch and step): resuming needs no stored state."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=position))


def _group_edges(graph: KnowledgeGraph) -> NDArray[np.int64]:
    """[2E] the number of every edge's (head, relation), ascending: edges are sorted by them."""
    heads = np.repeat(np.arange(graph.entity_count), graph.degrees)
    changes = (np.diff(heads) != 0) | (np.diff(graph.edge_relations) != 0)
    return np.concatenate([np.zeros(min(graph.edge_count, 1), np.int64), np.cumsum(changes)]).astype(np.int64)


def _divide(sizes: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the parts of consecutive groups begin and end, as few parts of at most `most` as possible, about equal."""
    parts = -(-sizes // most)
    groups = np.repeat(np.arange(len(sizes)), parts)
    index = np.arange(len(groups)) - np.repeat(np.cumsum(parts) - parts, parts)
    first = (np.cumsum(sizes) - sizes)[groups]
    begin = first + index * sizes[groups] // parts[groups]
    end = first + (index + 1) * sizes[groups] // parts[groups]
    return begin, end
