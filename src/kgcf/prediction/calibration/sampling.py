"""The best answers of questions: of one, as `predict` shows them, and of a whole split, as calibration needs them."""

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.machine.memory_bound import questions_at_once
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.calibration.ranked_answers import RankedAnswers
from kgcf.progress import Advance, silent


def best_first(scores: NDArray[np.floating], possible: NDArray[np.bool_], top: int) -> NDArray[np.int64]:
    """[≤ top] the possible candidates of highest score, best first; of equal ones the lowest id first."""
    positions = np.flatnonzero(possible)
    if len(positions) > top:
        bar = np.partition(scores[positions], len(positions) - top)[len(positions) - top]
        positions = positions[scores[positions] >= bar]
    return positions[np.argsort(-scores[positions], kind="stable")][:top]


def questions_of(triples: NDArray[np.int32], relation_count: int) -> NDArray[np.int64]:
    """[Q, 2] the distinct questions (head, relation) of both sides; (?, r, t) is (t, r + R, ?)."""
    tails = triples[:, :2]
    heads = np.stack([triples[:, 2], triples[:, 1] + relation_count], axis=1)
    return np.unique(np.concatenate([tails, heads]), axis=0).astype(np.int64)


def drawn_questions(task: Split, limit: int | None, seed: int) -> NDArray[np.int64]:
    """[Q, 2] the questions of a split's triples, or of `limit` of them drawn with the seed."""
    triples = task.queries
    if limit is not None and limit < len(triples):
        drawn = np.random.default_rng(seed).choice(len(triples), size=limit, replace=False)
        triples = triples[np.sort(drawn)]
    return questions_of(triples, task.observed.relation_count)


def collect_best(
    observed: AnsweringGraph,
    task: Split,
    top: int = 10,
    limit: int | None = None,
    seed: int = 0,
    advance: Advance = silent,
    memory: float | None = None,
) -> RankedAnswers:
    """The `top` best answers to the questions of a split's triples, or of `limit` of them drawn with the seed.

    Answers that are known without the split's own triples are left out: what the observed graph has, and on test
    what validation has. An answer is true if it is one of the split's own triples, and false else: so a fit on
    validation has no test truth among its labels, and a report on test counts the same kind of truth as the fit.
    A question that several triples ask is asked once.
    """
    asked = drawn_questions(task, limit, seed)
    own = KnowledgeGraph.build(task.queries, task.observed.entity_count, task.observed.relation_count)
    rows = questions_at_once(observed.memory if memory is None else memory, task.observed.entity_count)
    parts = [np.zeros((5, 0))]
    for first in range(0, len(asked), rows):
        chunk = asked[first : first + rows]
        scores, reached, supported = observed.score_supported(chunk[:, 0], chunk[:, 1])
        for i, question in enumerate(chunk):
            head, relation = question.tolist()
            true = own.tails(head, relation)
            possible = np.ones(len(scores[i]), dtype=bool)
            possible[task.known.tails(head, relation)] = False
            possible[true] = True
            possible[observed.graph.tails(head, relation)] = False
            found = best_first(scores[i], possible, top)
            logits = observed.logits_of_ranked(head, relation, found, scores[i], reached[i])
            which = np.full(len(found), first + i), np.full(len(found), relation)
            parts.append(np.stack([*which, logits, supported[i][found], np.isin(found, true)]))
        advance(len(chunk))
    questions, relations, values, reach, labels = np.concatenate(parts, axis=1)
    names = questions.astype(np.int64), relations.astype(np.int64)
    return RankedAnswers(*names, values, reach.astype(bool), labels.astype(bool), 2 * task.observed.relation_count)
