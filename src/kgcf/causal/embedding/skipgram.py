"""Skip-gram with negative sampling, compiled: the updates of gensim's Word2Vec, about four times as fast.

For a centre c and every entity u within its window, the input vector x_u meets the output vector y_c as
a true pair and those of k entities drawn ∝ count^¾ as false ones:

    g = rate · (label − σ(x_u · y)),   x_u ← x_u + Σ g · y,   y ← y + g · x_u

The window of every centre is shortened at random; a product beyond ±6 is left alone, its gradient being
nothing; σ comes from a table of 1,000 values. The random stream is that of word2vec, so a test can hold
this loop against gensim update by update. What differs is the rate, which falls walk by walk here.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgcf.machine.compiled import kernel, reassociated

Rounds = Callable[[], Iterator[NDArray[np.int32]]]  # the walks, a block of rows at a time; the same on every call
DOMAIN = 2**31 - 1  # the last entry of the cumulative table
LIMIT = 6.0  # products beyond it are not updated


def train_vectors(
    rounds: Rounds,
    counts: NDArray[np.int64],
    dimension: int,
    window: int,
    negatives: int,
    rates: NDArray[np.float32],
    generator: np.random.Generator,
) -> NDArray[np.float32]:
    """[n, D] input vectors after len(rates) walks, each with its own rate; `rounds` is called as often as needed."""
    inputs = initial_vectors(len(counts), dimension, generator)
    outputs = np.zeros_like(inputs)
    tables = make_tables(counts)
    state = generator.integers(2**48, dtype=np.uint64)
    done = 0
    while done < len(rates):
        for block in rounds():
            rate = rates[done : done + len(block)]
            state = update_vectors(inputs, outputs, block, rate, tables, window, negatives, state)
            done += len(block)
    return inputs


def initial_vectors(count: int, dimension: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Uniform in [−1/D, 1/D)."""
    drawn = generator.random((count, dimension), dtype=np.float32)
    return ((drawn * np.float32(2) - np.float32(1)) / np.float32(dimension)).astype(np.float32)


class Tables(NamedTuple):
    """What training looks up: where to draw negatives from, and σ."""

    cumulative: NDArray[np.uint32]  # [n] shares of the entities, added up
    guide: NDArray[np.int32]  # for every value of a draw's highest bits, where in `cumulative` to begin looking
    sigmoids: NDArray[np.float32]  # [1000] from −LIMIT to LIMIT


def make_tables(counts: NDArray[np.int64]) -> Tables:
    """The tables for entities that occur so often."""
    cumulative = cumulative_table(counts)
    bits = min(18, max(1, len(counts).bit_length() + 1))
    return Tables(cumulative, _guide_table(cumulative, bits), _sigmoids())


def cumulative_table(counts: NDArray[np.int64]) -> NDArray[np.uint32]:
    """[n] cumulative shares of count^¾, scaled to end at DOMAIN: negatives are drawn from it."""
    powers = np.cumsum(np.asarray(counts, dtype=np.float64) ** 0.75)
    table: NDArray[np.uint32] = np.rint(powers / powers[-1] * DOMAIN).astype(np.uint32)
    return table


def _sigmoids() -> NDArray[np.float32]:
    """[1000] σ from −LIMIT to LIMIT, in single precision as word2vec has it."""
    steps = np.arange(1000, dtype=np.float32) / np.float32(1000)
    exponentials = np.exp((steps * np.float32(2) - np.float32(1)) * np.float32(LIMIT)).astype(np.float32)
    table: NDArray[np.float32] = (exponentials / (exponentials + np.float32(1))).astype(np.float32)
    return table


@kernel
def _guide_table(cumulative: NDArray[np.uint32], bits: int) -> NDArray[np.int32]:
    """For every value of the highest bits of a draw, the first entry that can be its answer."""
    width = np.uint64(31 - bits)
    guide = np.empty((1 << bits) + 1, np.int32)
    position = 0
    for high in range((1 << bits) + 1):
        smallest = np.uint64(high) << width
        while position < len(cumulative) - 1 and np.uint64(cumulative[position]) < smallest:
            position += 1
        guide[high] = position
    return guide


@reassociated
def _train_pair(
    inputs: NDArray[np.float32],
    outputs: NDArray[np.float32],
    entity: int,
    targets: NDArray[np.int64],
    sigmoids: NDArray[np.float32],
    rate: np.float32,
    own: NDArray[np.float32],
    change: NDArray[np.float32],
) -> None:
    """One context: x of `entity` against the true target and the drawn ones; `own` and `change` are scratch [D]."""
    for d in range(len(own)):
        own[d] = inputs[entity, d]
        change[d] = 0
    for n in range(len(targets)):
        if n > 0 and targets[n] == targets[0]:
            continue
        row = outputs[targets[n]]
        product = np.float32(0)
        for d in range(len(own)):
            product += own[d] * row[d]
        if product <= -LIMIT or product >= LIMIT:
            continue
        gradient = -sigmoids[int((product + np.float32(LIMIT)) * np.float32(83))]
        if n == 0:
            gradient += np.float32(1)
        gradient *= rate
        for d in range(len(own)):
            output = row[d]
            change[d] += gradient * output
            row[d] = output + gradient * own[d]
    for d in range(len(own)):
        inputs[entity, d] = own[d] + change[d]


@reassociated
def update_vectors(
    inputs: NDArray[np.float32],
    outputs: NDArray[np.float32],
    walks: NDArray[np.int32],
    rates: NDArray[np.float32],
    tables: Tables,
    window: int,
    negatives: int,
    state: np.uint64,
) -> np.uint64:
    """Train on walks [W, L] in place; returns the state of the random stream."""
    factor, mask, sixteen = np.uint64(25214903917), np.uint64(281474976710655), np.uint64(16)
    width = np.uint64(0)
    while (len(tables.guide) - 1) << width < 2**31:
        width += np.uint64(1)
    own, change = np.empty(inputs.shape[1], np.float32), np.empty(inputs.shape[1], np.float32)
    shortened, targets = np.empty(walks.shape[1], np.int64), np.empty(negatives + 1, np.int64)
    for w in range(walks.shape[0]):
        for i in range(walks.shape[1]):
            shortened[i] = window - np.int64((state >> sixteen) % np.uint64(window))
            state = (state * factor + np.uint64(11)) & mask
        for i in range(walks.shape[1]):
            targets[0] = walks[w, i]
            for j in range(max(0, i - shortened[i]), min(walks.shape[1], i + shortened[i] + 1)):
                if j == i:
                    continue
                for n in range(1, negatives + 1):
                    drawn = (state >> sixteen) % np.uint64(DOMAIN)
                    state = (state * factor + np.uint64(11)) & mask
                    position = np.int64(tables.guide[drawn >> width])
                    while np.uint64(tables.cumulative[position]) < drawn:
                        position += 1
                    targets[n] = position
                _train_pair(inputs, outputs, walks[w, j], targets, tables.sigmoids, rates[w], own, change)
    return state
