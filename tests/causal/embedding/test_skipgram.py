"""The compiled skip-gram makes gensim's updates, and equals a plain loop over many walks."""

from pathlib import Path

import numpy as np
import pytest
from gensim.models import Word2Vec

from kgcf.causal.embedding.skipgram import (
    cumulative_table,
    initial_vectors,
    make_tables,
    train_vectors,
    update_vectors,
)


@pytest.mark.parametrize(("window", "negatives", "dimension"), [(10, 5, 32), (3, 2, 7), (1, 1, 16)])
def test_equals_gensim_update_by_update(window: int, negatives: int, dimension: int, tmp_path: Path) -> None:
    """One sentence in a file is one batch of gensim, with one rate: then its random stream and ours are the same."""
    rng = np.random.default_rng(2)
    walk = (np.cumsum(rng.integers(-2, 3, 3000)) % 40).astype(np.int32)
    counts = np.bincount(walk, minlength=40)
    model = Word2Vec(
        vector_size=dimension, window=window, negative=negatives, sg=1, min_count=1, sample=0, workers=1, seed=3,
        alpha=0.025, min_alpha=0.025, sorted_vocab=0,
    )  # fmt: skip
    model.build_vocab_from_freq({str(i): int(count) for i, count in enumerate(counts)})
    assert model.wv.index_to_key == [str(i) for i in range(40)]
    assert (model.cum_table == cumulative_table(counts)).all()
    inputs, outputs = model.wv.vectors.copy(), np.zeros_like(model.wv.vectors)
    (tmp_path / "walk").write_text(" ".join(map(str, walk)) + "\n")
    model.train(corpus_file=str(tmp_path / "walk"), total_words=len(walk), epochs=1)
    stream = np.random.RandomState(3)  # gensim's own stream
    state = np.uint64(2**24 * int(stream.randint(0, 2**24)) + int(stream.randint(0, 2**24)))
    rates = np.full(1, 0.025, np.float32)
    update_vectors(inputs, outputs, walk[None], rates, make_tables(counts), window, negatives, state)
    np.testing.assert_allclose(inputs, model.wv.vectors, atol=1e-3)
    np.testing.assert_allclose(outputs, model.syn1neg, atol=1e-3)


def train_by_loops(
    inputs: np.ndarray, outputs: np.ndarray, walks: np.ndarray, rates: np.ndarray, table: np.ndarray,
    window: int, negatives: int, state: int,
) -> None:  # fmt: skip
    """Word2vec's skip-gram, written as it reads, in float64."""

    def draw() -> int:
        nonlocal state
        value = state >> 16
        state = (state * 25214903917 + 11) % 2**48
        return value

    for walk, rate in zip(walks, rates, strict=True):
        windows = [window - draw() % window for _ in walk]
        for i, centre in enumerate(walk):
            for j in range(max(0, i - windows[i]), min(len(walk), i + windows[i] + 1)):
                if j == i:
                    continue
                drawn = [int(np.searchsorted(table, draw() % (2**31 - 1))) for _ in range(negatives)]
                own, change = inputs[walk[j]].copy(), 0.0
                for label, target in [(1.0, centre), *((0.0, t) for t in drawn if t != centre)]:
                    product = own @ outputs[target]
                    if abs(product) >= 6:
                        continue
                    step = int((product + 6) * 83) / 1000 * 12 - 6  # the table has 1,000 steps
                    gradient = rate * (label - 1 / (1 + np.exp(-step)))
                    change = change + gradient * outputs[target]
                    outputs[target] += gradient * own
                inputs[walk[j]] = own + change


@pytest.mark.parametrize("seed", range(4))
def test_equals_loops_over_many_walks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    walks = rng.integers(0, 6, (12, 9)).astype(np.int32)
    counts = np.bincount(walks.ravel(), minlength=6) + (np.arange(6) == 0) * 50
    rates = np.linspace(0.05, 0.001, 12).astype(np.float32)
    tables = make_tables(counts)
    inputs = initial_vectors(6, 5, rng)
    outputs = np.zeros_like(inputs)
    slow_inputs, slow_outputs = inputs.astype(np.float64), outputs.astype(np.float64)
    update_vectors(inputs, outputs, walks, rates, tables, 4, 3, np.uint64(12345))
    train_by_loops(slow_inputs, slow_outputs, walks, rates, tables.cumulative, 4, 3, 12345)
    np.testing.assert_allclose(inputs, slow_inputs, atol=1e-5)
    np.testing.assert_allclose(outputs, slow_outputs, atol=1e-5)


def test_negatives_are_drawn_by_count_to_three_quarters() -> None:
    counts = np.array([1, 16, 81, 256, 0, 10_000])
    table, guide, _ = make_tables(counts)
    assert table[-1] == 2**31 - 1
    shares = np.diff(np.concatenate([[0], table.astype(np.float64)])) / table[-1]
    np.testing.assert_allclose(shares, counts**0.75 / (counts**0.75).sum(), atol=1e-9)
    for value in [0, 1, 2**31 - 2, *np.random.default_rng(0).integers(0, 2**31 - 1, 200), *table[:-1].tolist()]:
        bits = int(np.log2(len(guide) - 1))
        assert guide[value >> (31 - bits)] <= np.searchsorted(table, value)


def test_neighbours_end_up_nearer_than_strangers() -> None:
    """Two cliques: walks never leave one, so its members' vectors agree."""
    rng = np.random.default_rng(0)
    walks = np.concatenate([rng.integers(0, 6, (120, 20)), rng.integers(6, 12, (120, 20))]).astype(np.int32)
    walks = walks[rng.permutation(len(walks))]
    rates = np.full(240, 0.025, np.float32)
    vectors = train_vectors(lambda: iter([walks]), np.bincount(walks.ravel()), 8, 5, 5, rates, rng)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = unit @ unit.T
    assert similarity[:6, :6].mean() > similarity[:6, 6:].mean() + 0.5
