"""The integer graph every stage works on: distinct triples and one compressed adjacency."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgcf.errors import DataError
from kgcf.machine.compiled import kernel
from kgcf.storage import map_arrays, read_header, save_arrays

Ints = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """N entities, R relations, E distinct triples (head, relation, tail), immutable.

    The adjacency lists, for every entity, its edges sorted by (relation, tail): E forward edges
    (h, r, t) and E inverse edges (t, r + R, h). The edges that *enter* v are the edges that leave v,
    turned round: (v, r, u) out means (u, inverse of r, v) in. So one table serves both directions.

    Build one with `KnowledgeGraph.build`, or map a saved one with `KnowledgeGraph.open`.
    """

    entity_count: int
    relation_count: int
    triples: NDArray[np.int32] = field(repr=False)  # [E, 3] in the order given
    weights: NDArray[np.float32] | None = field(repr=False)  # [E] or None: all ones
    offsets: NDArray[np.int64] = field(repr=False)  # [N + 1] first edge of every entity
    edge_relations: NDArray[np.int32] = field(repr=False)  # [2E] in 0 … 2R − 1
    edge_tails: NDArray[np.int32] = field(repr=False)  # [2E]
    edge_triples: NDArray[np.int32] = field(repr=False)  # [2E] e of a forward edge, e + E of an inverse one

    @classmethod
    def build(
        cls, triples: ArrayLike, entity_count: int, relation_count: int, weights: ArrayLike | None = None
    ) -> Self:
        """Index the triples; of repeated triples the first one stays, with its weight."""
        array = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        values = None if weights is None else np.asarray(weights, dtype=np.float32)
        _check(array, values, entity_count, relation_count)
        array, values = _drop_repeats(array, values, entity_count, relation_count)
        count = len(array)
        heads = np.concatenate([array[:, 0], array[:, 2]])
        relations = np.concatenate([array[:, 1], array[:, 1] + np.int32(relation_count)])
        tails = np.concatenate([array[:, 2], array[:, 0]])
        order = _sorting_order(heads, relations, tails, entity_count, 2 * relation_count)
        offsets = np.zeros(entity_count + 1, dtype=np.int64)
        np.cumsum(np.bincount(heads, minlength=entity_count), out=offsets[1:])
        frozen = (array, values, offsets, relations[order], tails[order], order.astype(np.int32))
        for part in frozen:
            if part is not None:
                part.setflags(write=False)
        assert len(order) == 2 * count
        return cls(entity_count, relation_count, *frozen)

    def __len__(self) -> int:
        return len(self.triples)

    @property
    def edge_count(self) -> int:
        """Forward and inverse edges together, 2E."""
        return len(self.edge_tails)

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """[N] edges at every entity, both directions; a self-loop counts twice."""
        return np.diff(self.offsets)

    @cached_property
    def edge_weights(self) -> NDArray[np.float32]:
        """[2E] the weight of every edge's triple, ones where the data has none."""
        if self.weights is None:
            return np.ones(self.edge_count, dtype=np.float32)
        return self.weights[self.edge_triples % max(len(self), 1)]

    @cached_property
    def has_self_loops(self) -> NDArray[np.bool_]:
        """[R] whether a relation has any triple with one entity at both ends."""
        found = np.zeros(self.relation_count, dtype=bool)
        found[self.triples[self.triples[:, 0] == self.triples[:, 2], 1]] = True
        return found

    def inverse(self, relations: Ints) -> Ints:
        """r + R for r, and r for r + R."""
        return (np.asarray(relations) + self.relation_count) % (2 * self.relation_count)

    def tail_ranges(self, heads: ArrayLike, relations: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[B], [B]: where in `edge_tails` the tails of every (head, relation) begin and end."""
        return _tail_ranges(self.offsets, self.edge_relations, _int64(heads), _int64(relations))

    def tails(self, head: int, relation: int) -> NDArray[np.int32]:
        """The known tails of (head, relation), ascending; relation may be an inverse one."""
        begin, end = self.tail_ranges([head], [relation])
        return self.edge_tails[begin[0] : end[0]]

    def find_edges(self, heads: ArrayLike, relations: ArrayLike, tails: ArrayLike) -> NDArray[np.int64]:
        """[B] the edge index of every (head, relation, tail), −1 where there is none."""
        begin, end = self.tail_ranges(heads, relations)
        return _find_edges(self.edge_tails, begin, end, _int64(tails))

    def contains(self, triples: ArrayLike) -> NDArray[np.bool_]:
        """[B] whether every (head, relation, tail) is in the graph."""
        array = np.asarray(triples).reshape(-1, 3)
        found: NDArray[np.bool_] = self.find_edges(array[:, 0], array[:, 1], array[:, 2]) >= 0
        return found

    def without(self, triples: ArrayLike) -> "KnowledgeGraph":
        """The graph rebuilt without some of its triples; entities and relations stay."""
        edges = self.find_edges(*np.asarray(triples).reshape(-1, 3).T)
        keep = np.ones(len(self), dtype=bool)
        keep[self.edge_triples[edges[edges >= 0]] % max(len(self), 1)] = False
        weights = None if self.weights is None else self.weights[keep]
        return KnowledgeGraph.build(self.triples[keep], self.entity_count, self.relation_count, weights)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that defines the graph; caches are keyed by it."""
        digest = hashlib.sha256(f"{self.entity_count} {self.relation_count} {self.weights is None} ".encode())
        digest.update(self.triples.tobytes())
        if self.weights is not None:
            digest.update(self.weights.tobytes())
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        """Write the graph to one `.safetensors` file, atomically."""
        arrays: dict[str, NDArray[np.generic]] = {
            "triples": self.triples,
            "offsets": self.offsets,
            "edge_relations": self.edge_relations,
            "edge_tails": self.edge_tails,
            "edge_triples": self.edge_triples,
        }
        if self.weights is not None:
            arrays["weights"] = self.weights
        counts = {"entity_count": str(self.entity_count), "relation_count": str(self.relation_count)}
        save_arrays(path, arrays, counts)

    @classmethod
    def open(cls, path: Path) -> "KnowledgeGraph":
        """Map a saved graph into memory; pages are read when they are touched."""
        counts = read_header(path)[1]
        return cls(
            entity_count=int(counts["entity_count"]),
            relation_count=int(counts["relation_count"]),
            **{"weights": None, **map_arrays(path)},  # type: ignore[arg-type]
        )


def _int64(values: ArrayLike) -> NDArray[np.int64]:
    return np.ascontiguousarray(values, dtype=np.int64)


def _check(
    triples: NDArray[np.int32], weights: NDArray[np.float32] | None, entity_count: int, relation_count: int
) -> None:
    if 2 * len(triples) > np.iinfo(np.int32).max:
        raise DataError(f"The graph has {len(triples):,} triples; one graph holds at most 1,073,741,823.")
    if weights is not None and weights.shape != (len(triples),):
        raise DataError(f"There are {len(triples):,} triples but {weights.size:,} weights; give one per triple.")
    if weights is not None and not np.isfinite(weights).all():
        raise DataError("A triple's weight is not a finite number; every weight must be one.")
    if not len(triples):
        return
    limits = np.array([entity_count, relation_count, entity_count])
    outside = (triples < 0) | (triples >= limits)
    if outside.any():
        row = int(np.flatnonzero(outside.any(axis=1))[0])
        raise DataError(
            f"Triple {tuple(map(int, triples[row]))} at position {row} is outside the graph of "
            f"{entity_count:,} entities and {relation_count:,} relations."
        )


def _sorting_order(
    heads: Ints, relations: Ints, tails: Ints, entity_count: int, relation_count: int
) -> NDArray[np.intp]:
    """The order by (head, relation, tail): one sort of a combined key, three where the key would overflow."""
    if _overflows(entity_count, relation_count):
        return np.lexsort((tails, relations, heads))
    return np.argsort(_keys(heads, relations, tails, entity_count, relation_count), kind="stable")


def _overflows(entity_count: int, relation_count: int, largest: int = 2**62) -> bool:
    return entity_count * relation_count * entity_count >= largest


def _keys(heads: Ints, relations: Ints, tails: Ints, entity_count: int, relation_count: int) -> NDArray[np.int64]:
    """[E] one number that orders like (head, relation, tail)."""
    keys: NDArray[np.int64] = heads.astype(np.int64)
    keys *= relation_count
    keys += relations
    keys *= entity_count
    keys += tails
    return keys


def _drop_repeats(
    triples: NDArray[np.int32], weights: NDArray[np.float32] | None, entity_count: int, relation_count: int
) -> tuple[NDArray[np.int32], NDArray[np.float32] | None]:
    """Keep the first of repeated triples; sorting plain keys shows cheaply that there is nothing to drop."""
    columns = (triples[:, 0], triples[:, 1], triples[:, 2])
    if not _overflows(entity_count, relation_count):
        keys = _keys(*columns, entity_count, relation_count)
        keys.sort()
        if not (keys[1:] == keys[:-1]).any():
            return triples.copy(), None if weights is None else weights.copy()
        del keys
    order = _sorting_order(*columns, entity_count, relation_count)
    ordered = triples[order]
    repeated = np.zeros(len(triples), dtype=bool)
    repeated[order[1:]] = (ordered[1:] == ordered[:-1]).all(axis=1)
    return triples[~repeated], None if weights is None else weights[~repeated]


@kernel
def _tail_ranges(
    offsets: NDArray[np.int64],
    edge_relations: NDArray[np.int32],
    heads: NDArray[np.int64],
    relations: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    begin = np.empty(len(heads), np.int64)
    end = np.empty(len(heads), np.int64)
    for i in range(len(heads)):
        first, last = offsets[heads[i]], offsets[heads[i] + 1]
        row = edge_relations[first:last]
        begin[i] = first + np.searchsorted(row, relations[i], "left")
        end[i] = first + np.searchsorted(row, relations[i], "right")
    return begin, end


@kernel
def _find_edges(
    edge_tails: NDArray[np.int32],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    tails: NDArray[np.int64],
) -> NDArray[np.int64]:
    found = np.full(len(begin), -1, np.int64)
    for i in range(len(begin)):
        position = begin[i] + np.searchsorted(edge_tails[begin[i] : end[i]], tails[i], "left")
        if position < end[i] and edge_tails[position] == tails[i]:
            found[i] = position
    return found
