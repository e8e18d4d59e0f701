"""Training queries: which triples of an epoch form a batch, what is asked, against whom, and what is hidden."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, Remove, hide_by_rule, hide_pairs
from kgcf.data.negatives import draw_negatives

LINKED_SHARE = 0.01  # of validation pairs that train links: below it, `auto` hides pairs


@dataclass(frozen=True, eq=False)
class Batch:
    """B training queries; the answer is the first of their candidates."""

    triples: NDArray[np.int64]  # [B] the train triple behind every query
    turned: NDArray[np.bool_]  # [B] whether the head is asked for
    heads: NDArray[np.int64]  # [B]
    relations: NDArray[np.int64]  # [B] r, or r + R where the head is asked for
    candidates: NDArray[np.int64]  # [B, 1 + K] answer, then negatives
    hidden: HiddenTriples
    impossible: int = 0  # queries left out because every entity is a known answer

    def __len__(self) -> int:
        return len(self.heads)

    def part(self, index: int, count: int) -> "Batch":
        """Every count-th query from `index` on: the parts of a batch cost about the same."""
        rows = np.arange(index, len(self), count)
        sizes = np.diff(self.hidden.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        pieces = [self.hidden.of(row) for row in rows.tolist()]
        hidden = HiddenTriples(offsets, np.concatenate([np.zeros(0, np.int32), *pieces]))
        return Batch(
            self.triples[rows], self.turned[rows], self.heads[rows], self.relations[rows], self.candidates[rows], hidden
        )


def make_batch(
    graph: KnowledgeGraph, triples: NDArray[np.int64], negatives: int, remove: Remove, generator: np.random.Generator
) -> Batch:
    """Ask for the tails of the first half and the heads of the second, each against strict negatives."""
    turned = np.arange(len(triples)) >= (len(triples) + 1) // 2
    head, relation, tail = graph.triples[triples].astype(np.int64).T
    heads, answers = np.where(turned, tail, head), np.where(turned, head, tail)
    relations = relation + turned * graph.relation_count
    drawn, possible = draw_negatives(graph, heads, relations, negatives, generator)
    candidates = np.concatenate([answers[:, None], drawn], axis=1)[possible]
    heads, relations = heads[possible], relations[possible]
    hidden = hide_by_rule(graph, heads, relations, candidates, remove)
    left_out = int((~possible).sum())
    return Batch(triples[possible], turned[possible], heads, relations, candidates, hidden, left_out)


def epoch_order(triple_count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch visits the train triples; it depends on nothing but seed and epoch."""
    return stream(seed, epoch).permutation(triple_count)


def stream(seed: int, *position: int) -> np.random.Generator:
    """The random numbers of one place of a run (epoch, or epoch and step): resuming needs no stored state."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=position))


def choose_removal(graph: KnowledgeGraph, validation: NDArray[np.int32]) -> Remove:
    """`auto`: hide whole pairs where validation pairs are hardly ever linked in train, else only the triple.

    FB15k-237 was made so that no valid or test pair is linked in train; there a direct link must not be
    evidence. Elsewhere it is the best evidence there is.
    """
    if not len(validation):
        return "triple"
    linked = _linked(graph, validation[:, 0].astype(np.int64), validation[:, 2].astype(np.int64))
    return "pair" if linked.mean() < LINKED_SHARE else "triple"


def _linked(graph: KnowledgeGraph, heads: NDArray[np.int64], tails: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[Q] whether any triple links head and tail, in either direction."""
    hidden = hide_pairs(graph, heads, tails[:, None])
    linked: NDArray[np.bool_] = np.diff(hidden.offsets) > 0
    return linked
