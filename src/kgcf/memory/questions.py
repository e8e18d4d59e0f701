"""What the memory is trained on: every train triple in both directions, answers of one question together."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.memory.gradients import Rows


@dataclass(frozen=True, eq=False)
class Questions:
    """All 2E (question, answer) pairs by rows of the memory, sorted by question."""

    known: NDArray[np.int64] = field(repr=False)  # [M] the entities of the graph that have an edge, ascending
    heads: NDArray[np.int64] = field(repr=False)  # [2E] places among the known
    relations: NDArray[np.int64] = field(repr=False)  # [2E] inverse ones included
    tails: NDArray[np.int64] = field(repr=False)  # [2E]
    groups: NDArray[np.int64] = field(repr=False)  # [2E] the number of the question (head, relation)

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "Questions":
        """Number the entities that have an edge; others do not exist for a memory, whichever file named them."""
        known = np.flatnonzero(graph.degrees)
        places = np.full(graph.entity_count, -1, dtype=np.int64)
        places[known] = np.arange(len(known))
        heads = np.repeat(np.arange(len(known)), graph.degrees[known])
        relations = graph.edge_relations.astype(np.int64)
        first = np.ones(len(heads), dtype=bool)
        first[1:] = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1])
        return cls(known, heads, relations, places[graph.edge_tails], np.cumsum(first) - 1)

    def row_count(self, answers: int) -> int:
        """Rows of scores in an epoch, if at most `answers` answers of a question share one."""
        return int((-(-np.bincount(self.groups) // answers)).sum())

    def step_count(self, answers: int, batch_size: int) -> int:
        """Steps in an epoch."""
        return -(-self.row_count(answers) // self._rows_per_step(answers, batch_size))

    def steps(self, answers: int, batch_size: int, generator: np.random.Generator, first: int = 0) -> Iterator[Rows]:
        """The rows of every step of an epoch from step `first` on; `batch_size` answers in a step on average.

        Which answers of a question share a row, and in which order rows come, is drawn anew with the generator.
        """
        order = np.lexsort((generator.random(len(self.groups)), self.groups))
        starts = np.searchsorted(self.groups, self.groups, side="left")  # [2E] where each question begins
        begins = np.flatnonzero((np.arange(len(order)) - starts) % answers == 0)  # [rows]
        ends = np.append(begins[1:], len(order))
        shuffled = generator.permutation(len(begins))
        size = self._rows_per_step(answers, batch_size)
        for step in range(first, -(-len(begins) // size)):
            rows = shuffled[step * size : (step + 1) * size]
            sizes = ends[rows] - begins[rows]
            within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            pairs = order[np.repeat(begins[rows], sizes) + within]
            yield Rows(
                torch.from_numpy(self.heads[begins[rows]]),
                torch.from_numpy(self.relations[begins[rows]]),
                torch.from_numpy(np.repeat(np.arange(len(rows)), sizes)),
                torch.from_numpy(self.tails[pairs]),
            )

    def _rows_per_step(self, answers: int, batch_size: int) -> int:
        """So many rows have `batch_size` answers on average."""
        return max(1, round(batch_size * self.row_count(answers) / max(len(self.groups), 1)))
