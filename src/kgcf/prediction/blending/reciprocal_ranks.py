"""What every weight would do to validation: reciprocal ranks of its answers, weight by weight."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Split
from kgcf.memory.memory import Memory
from kgcf.model.all_entities_kernels import put_reached_first
from kgcf.model.scorer import GraphScorer
from kgcf.prediction.blending.recall import AT_ONCE
from kgcf.prediction.blending.scorer import MemoryScorer
from kgcf.prediction.blending.trial_kernels import rank_under_all
from kgcf.progress import Advance, silent

WEIGHTS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)  # the first: paths alone
LOSSES = (0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -12.0)  # what an unreached answer loses
_NONE = np.zeros(1, dtype=np.float32)
_WEIGHTS, _LOSSES = np.array(WEIGHTS, dtype=np.float32), np.array(LOSSES, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class ReciprocalRanks:
    """One entry for each of A answers of questions about validation triples, both sides, filtered, realistic ties."""

    questions: NDArray[np.int64] = field(repr=False)  # [A] the number of the question (head, relation)
    relations: NDArray[np.int64] = field(repr=False)  # [A] inverse ones included
    paths: NDArray[np.float64] = field(repr=False)  # [A]
    memory: NDArray[np.float64] = field(repr=False)  # [A]
    both: NDArray[np.float64] = field(repr=False)  # [A, losses, weights]; weight 0 is paths alone

    def __len__(self) -> int:
        return len(self.questions)


def collect_reciprocal_ranks(
    paths: GraphScorer,
    memory: Memory,
    task: Split,
    limit: int | None,
    seed: int,
    advance: Advance = silent,
) -> ReciprocalRanks:
    """Ask about all triples of a task, or `limit` of them drawn with the seed, and try every weight on every answer."""
    triples = task.queries.astype(np.int64)
    if limit is not None and limit < len(triples):
        triples = triples[np.sort(np.random.default_rng(seed).choice(len(triples), size=limit, replace=False))]
    count = task.observed.relation_count
    heads = np.concatenate([triples[:, 0], triples[:, 2]])
    relations = np.concatenate([triples[:, 1], triples[:, 1] + count])
    answers = np.concatenate([triples[:, 2], triples[:, 0]])
    asked, questions = np.unique(heads * (2 * count) + relations, return_inverse=True)
    alone, both = np.empty((len(answers), 2)), np.empty((len(answers), len(LOSSES), len(WEIGHTS)))
    order = np.argsort(questions, kind="stable")
    for first in range(0, len(asked), AT_ONCE):
        chunk = asked[first : first + AT_ONCE]
        trials = _Trials(paths, memory, task, chunk // (2 * count), chunk % (2 * count))
        for number in range(len(chunk)):
            begin, end = np.searchsorted(questions[order], [first + number, first + number + 1])
            for place in order[begin:end]:
                trials.rank(number, int(answers[place]), alone[place], both[place])
        advance(len(chunk))
    return ReciprocalRanks(questions, relations, 1 / alone[:, 0], 1 / alone[:, 1], 1 / both)


def time_trials(entity_count: int, clock: Callable[[], float]) -> float:
    """Seconds that trying every weight on one answer takes here and now, besides what paths and memory need."""
    row = np.random.default_rng(0).random(entity_count, dtype=np.float32)
    everybody, ranks = np.ones(entity_count, dtype=bool), np.empty((len(LOSSES), len(WEIGHTS)))
    times = [clock()]
    for _ in range(2):  # the first warms up
        rank_under_all(row, row > 0.5, row, everybody, 0, _WEIGHTS, _LOSSES, ranks)
        times.append(clock())
    return times[2] - times[1]


class _Trials:
    """The scores of a few questions under every weight."""

    def __init__(
        self,
        paths: GraphScorer,
        memory: Memory,
        task: Split,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
    ) -> None:
        self._logits, self._reached = paths.score_with_reach(heads, relations, reached_first=False)
        self._ranking = self._logits.copy()
        put_reached_first(self._ranking, self._reached)
        self._speaks = memory.speaks(heads, relations)
        self._opinions = MemoryScorer(memory, self._logits.shape[1]).score_tails(heads, relations)
        self._rivals = np.ones(self._logits.shape, dtype=bool)
        for row, head, relation in zip(self._rivals, heads, relations, strict=True):
            row[task.known.tails(int(head), int(relation))] = False

    def rank(self, number: int, answer: int, alone: NDArray[np.float64], both: NDArray[np.float64]) -> None:
        """Fill in the ranks of an answer by paths and by memory alone [2], and under every loss and weight [S, W].

        Where memory knows nothing of the question, every weight leaves it to the paths.
        """
        rivals, reached = self._rivals[number], self._reached[number]
        for place, scores in enumerate((self._ranking[number], self._opinions[number])):
            rank_under_all(scores, reached, scores, rivals, answer, _NONE, _NONE, ranks := np.empty((1, 1)))
            alone[place] = ranks[0, 0]
        both[:] = alone[0]
        if self._speaks[number]:
            opinion = self._opinions[number]
            rank_under_all(self._logits[number], reached, opinion, rivals, answer, _WEIGHTS, _LOSSES, both)
            both[:, 0] = alone[0]  # a weight of 0 leaves a question to the paths
