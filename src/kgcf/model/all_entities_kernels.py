"""Ranking in numba: the last steps of the decoder for every entity, without a row per (query, entity).

A head's logit is w · ReLU(a + b) + c with a from the query (and treatment) and b from the candidate. Reached
candidates bring their projected state; unreached ones share one value per distinct context and treatment.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel
from kgcf.propagation.kernels.simd import VECTOR_BYTES, Floats, larger, load, splat, total


class Slots(NamedTuple):
    """The reached entities: the slots of the last layer, query by query."""

    offsets: NDArray[np.int64]  # [B + 1]
    entities: NDArray[np.int32]  # [S]
    states: Floats  # [S, H] projected


class Output(NamedTuple):
    """The last layer of a head: w and c."""

    weight: Floats  # [H]
    bias: float


@kernel
def _logit(a: Floats, i: int, b: Floats, j: int, extra: Floats | None, k: int, output: Floats) -> float:
    """w · ReLU(row i of a + row j of b + row k of extra) without the last bias."""
    lanes = VECTOR_BYTES // a.itemsize
    added = splat(a, 0.0)
    width = len(output)
    for c in range(0, width, lanes):
        hidden = load(a, i * width + c) + load(b, j * width + c)
        if extra is not None:
            hidden = hidden + load(extra, k * width + c)
        added = added + larger(hidden, splat(a, 0.0)) * load(output, c)
    return total(added)


@kernel
def score_contexts(queries: Floats, table: Floats, output: Output, values: Floats) -> None:
    """values [B·T, U] ← logits of queries [B·T, H] (T treatments each) with contexts [U, H]."""
    weight, bias = output.weight, output.bias
    for i in range(len(queries)):
        for j in range(len(table)):
            values[i, j] = _logit(queries, i, table, j, None, 0, weight) + bias


@kernel
def fill_unreached(
    values: Floats,  # [B, T, U]
    classes: NDArray[np.int64],  # [B or 1, N] the context of every entity
    treated: NDArray[np.bool_] | None,  # [B, N]
    scores: Floats,  # [B, N] filled
) -> None:
    """Give every entity the score of its context and treatment."""
    for b in range(scores.shape[0]):
        row = classes[min(b, len(classes) - 1)]
        for entity in range(scores.shape[1]):
            option = 0
            if treated is not None:
                option = 1 if treated[b, entity] else 0
            scores[b, entity] = values[b, option, row[entity]]


@kernel
def score_reached(
    slots: Slots,
    queries: Floats,  # [B·T, H]
    table: Floats | None,  # [U, H] contexts, where the reached have them
    classes: NDArray[np.int64],  # [B or 1, N]
    treated: NDArray[np.bool_] | None,
    output: Output,
    scores: Floats,  # [B, N] overwritten where reached
    reached: NDArray[np.bool_],  # [B, N] set where reached
) -> None:
    """Score the slots of the last layer."""
    entities, states, weight, bias = slots.entities, slots.states, output.weight, output.bias
    options = 1 if treated is None else 2
    for b in range(scores.shape[0]):
        row = classes[min(b, len(classes) - 1)]
        for slot in range(slots.offsets[b], slots.offsets[b + 1]):
            entity = entities[slot]
            query = b * options
            if treated is not None:
                query += 1 if treated[b, entity] else 0
            scores[b, entity] = _logit(states, slot, queries, query, table, row[entity], weight) + bias
            reached[b, entity] = True


@kernel
def put_reached_first(scores: Floats, reached: NDArray[np.bool_]) -> None:
    """`rank_reached_first` in place: move a query's unreached to at least 1 below its reached ones."""
    for b in range(scores.shape[0]):
        lowest, highest = np.inf, -np.inf
        for entity in range(scores.shape[1]):
            value = scores[b, entity]
            if reached[b, entity]:
                lowest = min(lowest, value)
            else:
                highest = max(highest, value)
        shift = scores.dtype.type(highest - lowest + 1)
        if shift > 0:
            for entity in range(scores.shape[1]):
                if not reached[b, entity]:
                    scores[b, entity] -= shift
