"""Which labels change when edges go: computed on the fly, or once for every edge and stored."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.relation_graphs import SimpleGraphs
from kgcf.causal.treatment.hidden_edges import HiddenEdges, hide_each_edge
from kgcf.causal.treatment.labels import LabelChanges
from kgcf.machine.compiled import kernel

NO_LIMIT = 2**40
# An edge whose removal changes more labels than this is not stored but computed when a query hides it: in a
# cycle of n entities every edge changes all n of them, and storing that would need n² entries.
STORED_PER_EDGE = 64


@dataclass(frozen=True, eq=False)
class Relabelled:
    """Label changes of B queries, and whether each was followed to its end (or left at the limit)."""

    changes: LabelChanges
    complete: NDArray[np.bool_]  # [B]; an incomplete query has no entries

    @classmethod
    def sorted(
        cls,
        graphs: SimpleGraphs,
        offsets: NDArray[np.int64],
        positions: NDArray[np.int32],
        labels: NDArray[np.int32],
        complete: NDArray[np.bool_],
    ) -> "Relabelled":
        """From new labels of places, in any order within a query."""
        queries = np.repeat(np.arange(len(complete)), np.diff(offsets))
        order = np.argsort(queries * np.int64(len(graphs.entities)) + positions)
        return cls(LabelChanges(offsets, graphs.entities[positions[order]], labels[order]), complete)


class Relabelling(Protocol):
    """The rule of one method: new labels on its graphs without some edges."""

    @property
    def graphs(self) -> SimpleGraphs:
        """The graphs whose edges are hidden."""

    def relabel(self, hidden: HiddenEdges, limit: int = NO_LIMIT) -> Relabelled:
        """The labels that change for every query, unless they are more than the limit."""


@dataclass(frozen=True, eq=False)
class StoredChanges:
    """The label changes of every single edge, ready to be looked up."""

    changes: LabelChanges  # one row per edge
    complete: NDArray[np.bool_]  # [S] False: too many to store

    @classmethod
    def compute(cls, rule: Relabelling, threads: int, limit: int = STORED_PER_EDGE) -> "StoredChanges":
        """Hide each edge in turn; the edges are spread over threads, the result does not depend on them."""
        count = rule.graphs.edge_count
        bounds = np.linspace(0, count, 8 * threads + 1).astype(np.int64)
        with ThreadPoolExecutor(threads) as pool:
            ranges = [hide_each_edge(int(a), int(b)) for a, b in pairwise(bounds)]
            parts = list(pool.map(lambda part: rule.relabel(part, limit), ranges))
        counts = np.concatenate([np.diff(part.changes.offsets) for part in parts])
        changes = LabelChanges(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.concatenate([part.changes.entities for part in parts]),
            np.concatenate([part.changes.labels for part in parts]),
        )
        return cls(changes, np.concatenate([part.complete for part in parts]))

    def changes_of(self, hidden: HiddenEdges, rule: Relabelling) -> LabelChanges:
        """Look up the queries that hide one edge; relabel those that hide several, or one that is not stored."""
        rows, others = _find_rows(hidden.offsets, hidden.edges, self.complete)
        new = rule.relabel(hidden.take(others)).changes if len(others) else LabelChanges.none(0)
        own = self.changes
        return LabelChanges(
            *_collect(rows, own.offsets, own.entities, own.labels, new.offsets, new.entities, new.labels)
        )

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As named arrays, to be saved."""
        return {
            "change_offsets": self.changes.offsets,
            "change_entities": self.changes.entities,
            "change_labels": self.changes.labels,
            "change_complete": self.complete,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> "StoredChanges | None":
        """From saved arrays, None if they hold no label changes."""
        if "change_offsets" not in arrays:
            return None
        changes = LabelChanges(
            np.array(arrays["change_offsets"], dtype=np.int64),
            np.array(arrays["change_entities"], dtype=np.int32),
            np.array(arrays["change_labels"], dtype=np.int32),
        )
        return cls(changes, np.array(arrays["change_complete"], dtype=np.bool_))


@kernel
def with_room(values: NDArray[np.int32], count: int, more: int) -> NDArray[np.int32]:
    """The same table, or a copy of its first entries in a longer one if it has no room for more."""
    if count + more <= len(values):
        return values
    longer = np.empty(2 * (count + more), np.int32)
    for i in range(count):
        longer[i] = values[i]
    return longer


@kernel
def _find_rows(
    offsets: NDArray[np.int64], edges: NDArray[np.int32], complete: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row of every query (−1: nothing hidden), and the queries without a stored one, numbered after those."""
    rows = np.full(len(offsets) - 1, -1, np.int64)
    others = np.empty(len(rows), np.int64)
    count = 0
    for b in range(len(rows)):
        size = offsets[b + 1] - offsets[b]
        if size == 1 and complete[edges[offsets[b]]]:
            rows[b] = edges[offsets[b]]
        elif size > 0:
            rows[b] = len(complete) + count
            others[count] = b
            count += 1
    return rows, others[:count].copy()


@kernel
def _collect(
    rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    entities: NDArray[np.int32],
    labels: NDArray[np.int32],
    more_offsets: NDArray[np.int64],
    more_entities: NDArray[np.int32],
    more_labels: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Copy row after row from two tables, the second numbered after the first; −1 is an empty row."""
    first_count = len(offsets) - 1
    result = np.zeros(len(rows) + 1, np.int64)
    for b in range(len(rows)):
        row, size = rows[b], np.int64(0)
        if row >= first_count:
            size = more_offsets[row - first_count + 1] - more_offsets[row - first_count]
        elif row >= 0:
            size = offsets[row + 1] - offsets[row]
        result[b + 1] = result[b] + size
    found = np.empty(result[-1], np.int32)
    new_labels = np.empty(result[-1], np.int32)
    for b in range(len(rows)):
        row = rows[b]
        for i in range(result[b + 1] - result[b]):
            if row >= first_count:
                found[result[b] + i] = more_entities[more_offsets[row - first_count] + i]
                new_labels[result[b] + i] = more_labels[more_offsets[row - first_count] + i]
            else:
                found[result[b] + i] = entities[offsets[row] + i]
                new_labels[result[b] + i] = labels[offsets[row] + i]
    return result, found, new_labels
