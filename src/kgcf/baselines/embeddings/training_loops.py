"""PyKEEN's two training loops, with epochs that announce themselves and, for 1-N, batches made at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pykeen.training import LCWATrainingLoop, SLCWATrainingLoop
from pykeen.triples import CoreTriplesFactory

Begin = Callable[[int], None]  # told, at the start of an epoch, how many steps it has
Batch = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class TailQuestions:
    """The distinct questions (h, r, ?) of the train triples, each with all its tails."""

    pairs: NDArray[np.int64] = field(repr=False)  # [Q, 2]
    offsets: NDArray[np.int64] = field(repr=False)  # [Q + 1] where a question's tails begin
    tails: NDArray[np.int64] = field(repr=False)
    entity_count: int
    batch_size: int

    @classmethod
    def of(cls, factory: CoreTriplesFactory, batch_size: int) -> "TailQuestions":
        """Group the triples by head and relation."""
        triples = factory.mapped_triples.numpy()
        ordered = triples[np.lexsort((triples[:, 2], triples[:, 1], triples[:, 0]))]
        pairs, first = np.unique(ordered[:, :2], axis=0, return_index=True)
        return cls(pairs, np.append(first, len(ordered)), ordered[:, 2], factory.num_entities, batch_size)

    def __len__(self) -> int:
        """How many batches an epoch has; a last one of a single question is left out, for batch norms need two."""
        whole, rest = divmod(len(self.pairs), self.batch_size)
        return max(1, whole + (rest > 1))

    def batches(self) -> Iterator[Batch]:
        """The questions in random order, with their answers as rows of ones."""
        order = torch.randperm(len(self.pairs)).numpy()
        for step in range(len(self)):
            chosen = order[step * self.batch_size : (step + 1) * self.batch_size]
            counts = self.offsets[chosen + 1] - self.offsets[chosen]
            inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            answers = self.tails[np.repeat(self.offsets[chosen], counts) + inside]
            target = torch.zeros(len(chosen), self.entity_count)
            target[torch.from_numpy(np.repeat(np.arange(len(chosen)), counts)), torch.from_numpy(answers)] = 1.0
            yield {"pairs": torch.from_numpy(self.pairs[chosen]), "target": target}


class _Announced:
    """Batches of an epoch; says when it begins, which is when random numbers are seeded."""

    def __init__(self, count: int, batches: Callable[[], Iterator[Any]], begin: Begin) -> None:
        self._count, self._batches, self._begin = count, batches, begin

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        self._begin(self._count)
        return self._batches()


class AllTails(LCWATrainingLoop):  # type: ignore[misc]
    """1-N training: a question against all entities."""

    def __init__(self, *, questions: TailQuestions, begin: Begin, **given: Any) -> None:  # noqa: ANN401
        super().__init__(**given)
        self._questions, self._begin = questions, begin

    def _create_training_data_loader(self, *_: Any, **__: Any) -> _Announced:  # noqa: ANN401
        return _Announced(len(self._questions), self._questions.batches, self._begin)


class SampledNegatives(SLCWATrainingLoop):  # type: ignore[misc]
    """A triple against corrupted ones."""

    def __init__(self, *, begin: Begin, **given: Any) -> None:  # noqa: ANN401
        super().__init__(**given)
        self._begin = begin

    def _create_training_data_loader(self, *given: Any, **named: Any) -> _Announced:  # noqa: ANN401
        loader = super()._create_training_data_loader(*given, **named)
        return _Announced(len(loader), lambda: iter(loader), self._begin)
