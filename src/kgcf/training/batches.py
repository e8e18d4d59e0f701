"""Training queries: what the passes of a batch ask, against whom, and what is hidden from them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, Remove, hide_by_rule, hide_pairs
from kgcf.data.negatives import draw_negatives, draw_reached
from kgcf.propagation.layers.encoder import EncoderSettings
from kgcf.propagation.plan.planner import Thinning
from kgcf.training.objective import ObjectiveSettings
from kgcf.training.passes import Asked, ask_both_ways, stream

__all__ = ["Batch", "Rules", "ask_against", "choose_removal", "make_batch", "rules_for", "stream", "triples_batch"]

LINKED_SHARE = 0.01  # of validation pairs that train links: below it, `auto` hides pairs


@dataclass(frozen=True)
class Rules:
    """How the passes of a batch are asked."""

    negatives: int
    remove: Remove
    within: int | None = None  # draw negatives among what the head reaches in so many layers; None: among all
    everywhere: int = 0  # so many of the negatives are drawn among all nevertheless


@dataclass(frozen=True, eq=False)
class Batch:
    """B passes; their answers are the first of their candidates."""

    asked: Asked  # [B, A]
    heads: NDArray[np.int64]  # [B]
    relations: NDArray[np.int64]  # [B] r, or r + R where the head is asked for
    candidates: NDArray[np.int64]  # [B, A + K] answers, the first repeated where there are fewer, then negatives
    hidden: HiddenTriples
    keys: NDArray[np.uint64]  # [B] what the edges drawn in a pass depend on, where a fan-in is set
    impossible: int = 0  # answers left out because every entity is a known answer

    def __len__(self) -> int:
        return len(self.heads)

    def part(self, index: int, count: int) -> "Batch":
        """Every count-th pass from `index` on: the parts of a batch cost about the same."""
        rows = np.arange(index, len(self), count)
        sizes = np.diff(self.hidden.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        pieces = [self.hidden.of(row) for row in rows.tolist()]
        hidden = HiddenTriples(offsets, np.concatenate([np.zeros(0, np.int32), *pieces]))
        given = self.heads[rows], self.relations[rows], self.candidates[rows]
        return Batch(_rows(self.asked, rows), *given, hidden, self.keys[rows])

    def thinning(self, fan_in: int | None) -> Thinning | None:
        """How the planner draws the edges of every update; None: it lists all."""
        return None if fan_in is None else Thinning(fan_in, self.keys)


def rules_for(objective: ObjectiveSettings, remove: Remove, encoder: EncoderSettings) -> Rules:
    """What the settings say. A head of the unreached learns from negatives drawn among all entities."""
    if objective.negatives_from == "all":
        return Rules(objective.negatives, remove)
    everywhere = objective.negatives // 4 if encoder.context == "unreached" else 0
    return Rules(objective.negatives, remove, encoder.layers, everywhere)


def make_batch(graph: KnowledgeGraph, asked: Asked, rules: Rules, generator: np.random.Generator) -> Batch:
    """Passes with strict negatives; what their answers would betray is hidden, of all answers of a pass together."""
    head, relation, tail = graph.triples[asked.triples].astype(np.int64).transpose(2, 0, 1)  # [B, A] each
    turned = asked.turned[:, None]
    answers = np.where(turned, head, tail)
    heads, relations = np.where(turned, tail, head)[:, 0], (relation + turned * graph.relation_count)[:, 0]
    return ask_against(graph, asked, heads, relations, answers, rules, generator)


def ask_against(
    graph: KnowledgeGraph,
    asked: Asked,
    heads: NDArray[np.int64],
    relations: NDArray[np.int64],
    answers: NDArray[np.int64],
    rules: Rules,
    generator: np.random.Generator,
) -> Batch:
    """Questions [B] with answers [B, A] against strict negatives, each without what its answers would betray."""
    drawn, possible = _draw(graph, heads, relations, answers, rules, generator)
    candidates = np.concatenate([answers, drawn], axis=1)[possible]
    heads, relations = heads[possible], relations[possible]
    hidden = hide_by_rule(graph, heads, relations, candidates, rules.remove, answers.shape[1])
    left_out = int(asked.counts[~possible].sum())
    keys = generator.integers(0, np.iinfo(np.uint64).max, len(heads), np.uint64)  # last: other draws stay the same
    return Batch(_rows(asked, np.flatnonzero(possible)), heads, relations, candidates, hidden, keys, left_out)


def triples_batch(
    graph: KnowledgeGraph, triples: NDArray[np.int64], negatives: int, remove: Remove, generator: np.random.Generator
) -> Batch:
    """A batch of single answers: the tails of the first half are asked for, and the heads of the second."""
    return make_batch(graph, ask_both_ways(triples), Rules(negatives, remove), generator)


def _draw(
    graph: KnowledgeGraph,
    heads: NDArray[np.int64],
    relations: NDArray[np.int64],
    answers: NDArray[np.int64],
    rules: Rules,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """[B, K] negatives, and [B] whether there are any."""
    drawn, possible = draw_negatives(graph, heads, relations, rules.negatives, generator)
    if rules.within is not None:
        hidden = hide_by_rule(graph, heads, relations, answers, rules.remove, answers.shape[1])
        count = rules.negatives - rules.everywhere
        near = draw_reached(graph, heads, relations, count, rules.within, hidden, generator)
        drawn[:, :count] = np.where(near >= 0, near, drawn[:, :count])
    return drawn, possible


def _rows(asked: Asked, rows: NDArray[np.int64]) -> Asked:
    return Asked(asked.triples[rows], asked.counts[rows], asked.turned[rows])


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
