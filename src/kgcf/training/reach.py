"""Which share of answers lies within 1, 2, … layers of its question, before anything is trained."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hops import distances
from kgcf.training.batches import stream, triples_batch
from kgcf.training.depth import NEARLY_ALL

Removal = Literal["triple", "pair"]
SAMPLE = 500  # queries of train, and of validation, that are measured
DEEPEST = 8  # layers that are looked at
_STREAM = 0x7EAC4  # draws of its own: measuring changes no training


@dataclass(frozen=True)
class Reach:
    """The shares of answers within 1 … DEEPEST hops, of train queries without their hidden set and of validation."""

    train: tuple[float, ...]
    valid: tuple[float, ...] | None  # None: there are no validation triples

    @property
    def shares(self) -> tuple[float, ...]:
        """The smaller of the two at every depth: what is out of reach in train is not learned, elsewhere not found."""
        return self.train if self.valid is None else tuple(map(min, self.train, self.valid))

    def sentence(self, layers: int) -> str:
        """What so many layers reach."""
        position = min(layers, DEEPEST) - 1
        found = f"{self.train[position]:.0%} of the sampled train queries"
        if self.valid is not None:
            found += f" and {self.valid[position]:.0%} of the validation queries"
        return f"With {layers} layers the answer is within reach for {found}"


def measure_reach(
    graph: KnowledgeGraph,
    validation: NDArray[np.int32],
    negatives: int,
    remove: Removal,
    seed: int,
    observed: KnowledgeGraph | None = None,
) -> Reach:
    """Measure on a sample; L layers see paths of at most L edges, and a train query not what is hidden from it.

    `observed` is the graph that validation asks about, where that is another than the train graph.
    """
    drawn = stream(seed, _STREAM)
    triples = drawn.permutation(len(graph))[:SAMPLE]
    batch = triples_batch(graph, triples, negatives, remove, drawn)
    pairs = np.stack([batch.heads, batch.candidates[:, 0]], axis=1)
    valid = None
    if len(validation):
        chosen = drawn.permutation(len(validation))[:SAMPLE]
        valid = _shares(distances(observed or graph, validation[chosen][:, [0, 2]], DEEPEST))
    return Reach(_shares(distances(graph, pairs, DEEPEST, batch.hidden)), valid)


def advise_depth(graph: KnowledgeGraph, layers: int, negatives: int, remove: Removal, seed: int) -> str:
    """What to change where answers are out of reach of so many layers: the depth only if more of it reaches more."""
    train = measure_reach(graph, np.zeros((0, 3), np.int32), negatives, remove, seed).train
    if layers < DEEPEST and train[-1] <= train[layers - 1]:
        return (
            f"More layers would not help: with {DEEPEST} no more answers are within reach. Give more triples, or "
            "relations that link these entities in other ways."
        )
    nearly_all = (d for d, share in enumerate(train, start=1) if d > layers and share >= NEARLY_ALL * train[-1])
    better = next(nearly_all, layers + 2)
    return f"Train again with more layers, for example --set encoder.layers={better}, or with more triples."


def _shares(hops: NDArray[np.int64]) -> tuple[float, ...]:
    return tuple(float((hops <= depth).mean()) if len(hops) else 0.0 for depth in range(1, DEEPEST + 1))
