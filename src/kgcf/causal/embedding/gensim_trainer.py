"""The same stage by gensim's Word2Vec, one worker: the engine to compare with, and the oracle of the tests."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.embedding.settings import SpaceSettings
from kgcf.causal.embedding.skipgram import Rounds
from kgcf.errors import MissingExtraError


@dataclass(frozen=True)
class _Walks:
    """The walks as gensim reads them: lists of tokens, from the beginning on every pass."""

    rounds: Rounds

    def __iter__(self) -> Iterator[list[int]]:
        for block in self.rounds():
            yield from block.tolist()


def gensim_version() -> str:
    """The version that is installed: vectors depend on it."""
    try:
        return version("gensim")
    except PackageNotFoundError as error:
        raise MissingExtraError("space.engine=gensim", "gensim") from error


def train_with_gensim(
    rounds: Rounds, counts: NDArray[np.int64], settings: SpaceSettings, generator: np.random.Generator
) -> NDArray[np.float32]:
    """[n, D] vectors; tokens are local ids, so nothing depends on how Python hashes strings."""
    gensim_version()
    from gensim.models import Word2Vec

    tokens = int(counts.sum())
    model = Word2Vec(
        vector_size=settings.dimension,
        window=settings.window,
        negative=settings.negatives,
        alpha=settings.rate,
        min_alpha=settings.final_rate,
        seed=int(generator.integers(2**31)),
        sg=1,
        min_count=1,
        sample=0,
        workers=1,  # more than one is not deterministic
        batch_words=min(10_000, max(settings.length, tokens // 20)),  # small relations: let the rate fall too
    )
    model.build_vocab_from_freq({i: int(count) for i, count in enumerate(counts)})
    model.train(_Walks(rounds), total_examples=tokens // settings.length, total_words=tokens, epochs=settings.epochs)
    vectors = np.empty((len(counts), settings.dimension), np.float32)
    vectors[np.asarray(model.wv.index_to_key, dtype=np.int64)] = model.wv.vectors
    return vectors
