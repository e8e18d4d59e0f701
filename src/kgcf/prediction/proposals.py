"""What `complete` would propose, with the truth: facts are held back, its own questions asked, its links labelled.

Asking everything would cost as much as completing the graph. So questions are drawn, those with a fact held back
apart from those without, and of a question's links the best are kept and a few of the others; each stands for as
many as were left out. Seeded; what is drawn depends on the observed graph and the facts held back alone.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.calibration.completed_links import Scope, group_count, link_groups
from kgcf.prediction.calibration.link_curves import Proposals
from kgcf.prediction.completion import Sides, new_links
from kgcf.progress import Advance, silent

BEST = 100  # links of a question that are all looked at
OTHERS = 20  # drawn from the false ones below


@dataclass(frozen=True, eq=False)
class DrawnQuestions:
    """Questions (head, relation, ?), by relation; each stands for `weights` of them."""

    heads: NDArray[np.int64] = field(repr=False)  # [Q]
    relations: NDArray[np.int64] = field(repr=False)  # [Q] ascending
    weights: NDArray[np.float64] = field(repr=False)  # [Q]


def draw_questions(
    observed: AnsweringGraph,
    held_back: NDArray[np.int32],
    scope: Scope,
    limit: int | None,
    generator: np.random.Generator,
) -> DrawnQuestions:
    """All questions that `complete` asks, or `limit` of them: half from those with a fact held back, if there are."""
    graph = observed.graph
    pools: list[tuple[int, NDArray[np.int64]]] = []  # even places: with a fact held back; odd: without
    for relation in range(graph.relation_count):
        heads = np.arange(graph.entity_count) if scope == "all" else np.flatnonzero(Sides.of(graph, relation).heads)
        asked = np.isin(heads, held_back[held_back[:, 1] == relation][:, 0])
        pools += [(relation, heads[asked]), (relation, heads[~asked])]
    counts = np.array([len(heads) for _, heads in pools], dtype=np.int64)
    sizes = counts.copy()
    if limit is not None and counts.sum() > limit:
        sizes[::2] = shares(counts[::2], max(limit // 2, limit - int(counts[1::2].sum())))
        sizes[1::2] = shares(counts[1::2], limit - int(sizes[::2].sum()))
    parts = [
        (np.sort(generator.choice(heads, size=size, replace=False)), relation, len(heads) / max(size, 1))
        for (relation, heads), size in zip(pools, sizes.tolist(), strict=True)
        if size
    ]
    return DrawnQuestions(
        np.concatenate([np.zeros(0, np.int64), *(heads for heads, _, _ in parts)]),
        np.repeat([r for _, r, _ in parts], [len(h) for h, _, _ in parts]).astype(np.int64),
        np.repeat([w for _, _, w in parts], [len(h) for h, _, _ in parts]).astype(np.float64),
    )


def shares(counts: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """How many to draw of each: as the square roots of their numbers, so that the rare are heard; none if none."""
    if counts.sum() <= limit:
        return counts.copy()
    low, high = 0.0, float(np.sqrt(counts.max()))
    for _ in range(60):
        middle = (low + high) / 2
        asked = np.minimum(counts, np.ceil(middle * np.sqrt(counts))).sum()
        low, high = (middle, high) if asked <= limit else (low, middle)
    return np.minimum(counts, np.ceil(low * np.sqrt(counts))).astype(np.int64)


def collect_proposals(
    observed: AnsweringGraph,
    held_back: NDArray[np.int32],
    scope: Scope = "seen",
    limit: int | None = None,
    seed: int = 0,
    advance: Advance = silent,
) -> Proposals:
    """The links that completing the observed graph would propose, true where they are among the facts held back.

    None where nothing is held back: all would be false, and a probability fitted to them 0 for every link.
    """
    graph, generator = observed.graph, np.random.default_rng(seed)
    drawn = draw_questions(observed, held_back, scope, limit if len(held_back) else 0, generator)
    facts = KnowledgeGraph.build(held_back, graph.entity_count, graph.relation_count)
    rows = observed.questions_at_once
    parts = [np.zeros((5, 0))]
    sides = Sides.of(graph, 0)
    for first in range(0, len(drawn.heads), rows):
        heads, relations = drawn.heads[first : first + rows], drawn.relations[first : first + rows]
        scores, _, supported = observed.score_supported(heads, relations)
        for i, (head, relation) in enumerate(zip(heads.tolist(), relations.tolist(), strict=True)):
            if sides.relation != relation:
                sides = Sides.of(graph, relation)
            links = new_links(graph, sides, head, supported[i], scope)
            true = np.isin(links, facts.tails(head, relation))
            kept, weights = _choose(scores[i][links], true, generator)
            tails = links[kept]
            groups = link_groups(scope, relation, bool(sides.heads[head]), sides.tails[tails])
            question = np.full(len(tails), first + i)
            stands_for = weights * drawn.weights[first + i]
            parts.append(np.stack([question, groups, scores[i][tails], true[kept], stands_for]))
        advance(len(heads))
    questions, groups, logits, labels, weights = np.concatenate(parts, axis=1)
    return Proposals(
        questions.astype(np.int64),
        groups.astype(np.int64),
        logits,
        labels.astype(bool),
        weights,
        group_count(scope, graph.relation_count),
    )


def _choose(
    values: NDArray[np.float32], true: NDArray[np.bool_], generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Places of the best links, of every true one and of a few others, and what each of them stands for."""
    if len(values) <= BEST + OTHERS:
        return np.arange(len(values)), np.ones(len(values))
    best = np.zeros(len(values), dtype=bool)
    best[np.argpartition(-values, BEST - 1)[:BEST]] = True
    others = np.flatnonzero(~best & ~true)
    drawn = others if len(others) <= OTHERS else np.sort(generator.choice(others, size=OTHERS, replace=False))
    kept = np.concatenate([np.flatnonzero(best | true), drawn])
    weights = np.ones(len(kept))
    weights[len(kept) - len(drawn) :] = len(others) / max(len(drawn), 1)
    return kept, weights
