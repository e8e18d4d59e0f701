"""Labels of entities per relation, kept where they exist, and their comparison: T = 1 iff the labels agree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgcf.machine.compiled import kernel


@dataclass(frozen=True, eq=False)
class LabelChanges:
    """For each of B queries the entities whose label differs once its hidden triples are gone; 0 means none."""

    offsets: NDArray[np.int64]  # [B + 1] first entry of every query
    entities: NDArray[np.int32]  # ascending within a query
    labels: NDArray[np.int32]  # the new labels

    @classmethod
    def none(cls, query_count: int) -> "LabelChanges":
        """B queries for which every label stays."""
        return cls(np.zeros(query_count + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, query: int) -> dict[int, int]:
        """The new label of every entity that changes for one query."""
        entries = slice(self.offsets[query], self.offsets[query + 1])
        return dict(zip(self.entities[entries].tolist(), self.labels[entries].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class LabelTable:
    """c_r: a label ≥ 1 for the entities that have one, per group of relations; 0 stands for no label.

    Labels are compared within one relation only, and only for equality.
    """

    entity_count: int
    groups: NDArray[np.int32] = field(repr=False)  # [R] the group of every relation
    offsets: NDArray[np.int64] = field(repr=False)  # [G + 1] first entry of every group
    entities: NDArray[np.int32] = field(repr=False)  # [M] ascending within a group
    labels: NDArray[np.int32] = field(repr=False)  # [M] all ≥ 1

    def __post_init__(self) -> None:
        for part in (self.groups, self.offsets, self.entities, self.labels):
            part.setflags(write=False)

    @property
    def relation_count(self) -> int:
        """R, without inverse relations."""
        return len(self.groups)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As named arrays, to be saved."""
        return {"groups": self.groups, "offsets": self.offsets, "entities": self.entities, "labels": self.labels}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]], entity_count: int) -> "LabelTable":
        """From saved arrays."""
        return cls(
            entity_count,
            np.array(arrays["groups"], dtype=np.int32),
            np.array(arrays["offsets"], dtype=np.int64),
            np.array(arrays["entities"], dtype=np.int32),
            np.array(arrays["labels"], dtype=np.int32),
        )

    def group_of(self, relations: ArrayLike) -> NDArray[np.int64]:
        """[B] the group of every relation; the inverse r + R has the group of r."""
        asked = np.array(relations, dtype=np.int64)
        if asked.size and (asked.min() < 0 or asked.max() >= 2 * self.relation_count):
            raise ValueError(f"A relation id is outside 0 … {2 * self.relation_count - 1} (inverse ones included).")
        return self.groups[asked % max(self.relation_count, 1)].astype(np.int64)

    def of(self, relation: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The entities that have a label under one relation, ascending, and their labels."""
        group = self.group_of([relation])[0]
        entries = slice(self.offsets[group], self.offsets[group + 1])
        return self.entities[entries], self.labels[entries]

    def dense(self, relation: int) -> NDArray[np.int32]:
        """[N] the label of every entity under one relation, 0 where it has none."""
        row = np.zeros(self.entity_count, dtype=np.int32)
        entities, labels = self.of(relation)
        row[entities] = labels
        return row

    def compare(
        self, heads: ArrayLike, relations: ArrayLike, candidates: ArrayLike | None, changes: LabelChanges
    ) -> NDArray[np.bool_]:
        """[B, K], or [B, N] against all entities: whether head and candidate have the same label."""
        sources, groups = np.array(heads, dtype=np.int64), self.group_of(relations)
        if not sources.shape == groups.shape == (len(changes),):
            raise ValueError(f"There are {sources.size} heads, {groups.size} relations and {len(changes)} hidden sets.")
        table = _Rows(self.offsets, self.entities, self.labels)
        patch = _Rows(changes.offsets, changes.entities, changes.labels)
        if candidates is None:
            return _compare_all(sources, groups, self.entity_count, table, patch)
        wanted = np.array(candidates, dtype=np.int64, order="C")
        _check_rows(len(sources), wanted)
        return _compare(sources, groups, wanted, table, patch)


class _Rows(NamedTuple):
    """Labels as the kernels take them: of the groups of a table, or of the queries of `LabelChanges`."""

    offsets: NDArray[np.int64]
    entities: NDArray[np.int32]
    labels: NDArray[np.int32]


def _check_rows(count: int, table: NDArray[np.int64]) -> None:
    if table.ndim != 2 or len(table) != count:
        raise ValueError(f"Entities must be a table of {count} rows, one per query, but have the shape {table.shape}.")


@kernel
def _find(values: NDArray[np.int32], begin: int, end: int, wanted: int) -> int:
    """Where a value stands in an ascending range, −1 if nowhere."""
    stop = end
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin if begin < stop and values[begin] == wanted else -1


@kernel
def _label(entity: int, table: _Rows, group: int, changes: _Rows, query: int) -> int:
    """The label of an entity in a group: the changed one if it is among the changes of the query, 0 if it has none."""
    position = _find(changes.entities, changes.offsets[query], changes.offsets[query + 1], entity)
    if position >= 0:
        return int(changes.labels[position])
    position = _find(table.entities, table.offsets[group], table.offsets[group + 1], entity)
    return int(table.labels[position]) if position >= 0 else 0


@kernel
def _compare(
    heads: NDArray[np.int64], groups: NDArray[np.int64], candidates: NDArray[np.int64], table: _Rows, changes: _Rows
) -> NDArray[np.bool_]:
    """[B, K] whether a head and its candidates have the same label."""
    result = np.zeros(candidates.shape, np.bool_)
    for b in range(len(heads)):
        own = _label(heads[b], table, groups[b], changes, b)
        if own == 0:
            continue
        for k in range(candidates.shape[1]):
            result[b, k] = _label(candidates[b, k], table, groups[b], changes, b) == own
    return result


@kernel
def _compare_all(
    heads: NDArray[np.int64], groups: NDArray[np.int64], entity_count: int, table: _Rows, changes: _Rows
) -> NDArray[np.bool_]:
    """[B, N] whether a head and every entity have the same label."""
    result = np.zeros((len(heads), entity_count), np.bool_)
    for b in range(len(heads)):
        own = _label(heads[b], table, groups[b], changes, b)
        if own == 0:
            continue
        for position in range(table.offsets[groups[b]], table.offsets[groups[b] + 1]):
            if table.labels[position] == own:
                result[b, table.entities[position]] = True
        for position in range(changes.offsets[b], changes.offsets[b + 1]):
            result[b, changes.entities[position]] = changes.labels[position] == own
    return result
