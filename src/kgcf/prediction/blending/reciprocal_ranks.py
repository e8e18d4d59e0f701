"""What every weight would do to validation: reciprocal ranks of its answers, weight by weight."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Split
from kgcf.memory.memory import Memory
from kgcf.model.all_entities_kernels import put_reached_first
from kgcf.model.scorer import GraphScorer
from kgcf.prediction.blending.recall import AT_ONCE, blend_row
from kgcf.progress import Advance, silent

WEIGHTS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)  # the first: paths alone
LOSSES = (0.0, -3.0, -6.0, -12.0)  # what an unreached answer loses


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
    table = np.empty((len(answers), 2 + len(LOSSES) * len(WEIGHTS)))
    order = np.argsort(questions, kind="stable")
    for first in range(0, len(asked), AT_ONCE):
        chunk = asked[first : first + AT_ONCE]
        trials = _Trials(paths, memory, task, chunk // (2 * count), chunk % (2 * count))
        for number in range(len(chunk)):
            scores, known = trials.of(number)
            begin, end = np.searchsorted(questions[order], [first + number, first + number + 1])
            for place in order[begin:end]:
                table[place] = 1 / _ranks(scores, known, int(answers[place]))
        advance(len(chunk))
    both = table[:, 2:].reshape(-1, len(LOSSES), len(WEIGHTS))
    both[:, :, 0] = table[:, :1]
    return ReciprocalRanks(questions, relations, table[:, 0], table[:, 1], both)


def time_trials(entity_count: int, clock: Callable[[], float]) -> float:
    """Seconds that trying every weight on one answer takes here and now, besides what paths and memory need."""
    generator = np.random.default_rng(0)
    row = generator.random(entity_count, dtype=np.float32)
    none, everybody = np.zeros(0, dtype=np.int32), np.arange(entity_count)
    times = [clock()]
    for _ in range(2):  # the first warms up
        scores = np.tile(row, (2 + len(LOSSES) * len(WEIGHTS), 1))
        for number in range(2, len(scores)):
            blend_row(scores[number], row > 0.5, everybody, row, np.float32(number), np.float32(-1.0))
        _ranks(scores, none, 0)
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
        self._task, self._heads, self._relations, self._known = task, heads, relations, memory.known
        self._logits, self._reached = paths.score_with_reach(heads, relations, reached_first=False)
        self._ranking = self._logits.copy()
        put_reached_first(self._ranking, self._reached)
        self._speaks = memory.speaks(heads, relations)
        self._opinions = np.zeros((len(heads), len(memory.known)), dtype=np.float32)
        self._opinions[self._speaks] = memory.opinions(heads[self._speaks], relations[self._speaks])

    def of(self, number: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """[2 + losses · weights, N] scores of one question, paths and memory alone first; and its known answers.

        Where memory knows nothing of the question, every weight leaves it to the paths.
        """
        known = self._task.known.tails(int(self._heads[number]), int(self._relations[number]))
        ranking, opinion = self._ranking[number], self._opinions[number]
        scores = np.tile(ranking, (2 + len(LOSSES) * len(WEIGHTS), 1))
        scores[1] = 0
        scores[1, self._known] = opinion
        if self._speaks[number]:
            scores[2:] = self._logits[number]
            settings = [(loss, weight) for loss in LOSSES for weight in WEIGHTS]
            for row, (loss, weight) in zip(scores[2:], settings, strict=True):
                blend_row(row, self._reached[number], self._known, opinion, np.float32(weight), np.float32(loss))
        return scores, known


def _ranks(scores: NDArray[np.float32], known: NDArray[np.int32], answer: int) -> NDArray[np.float64]:
    """[S] the realistic rank of an answer in each of S rows of scores, known answers left out."""
    own = scores[:, answer, None]
    aside = scores[:, np.union1d(known, answer)]
    above = np.count_nonzero(scores > own, axis=1) - np.count_nonzero(aside > own, axis=1)
    beside = np.count_nonzero(scores == own, axis=1) - np.count_nonzero(aside == own, axis=1)
    ranks: NDArray[np.float64] = 1.0 + above + beside / 2
    return ranks
