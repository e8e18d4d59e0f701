"""A PyKEEN model as a baseline: trained by PyKEEN's own loops, counted, validated and kept by ours."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pykeen.models import ERModel
from pykeen.training import TrainingCallback
from pykeen.training.training_loop import NonFiniteLossError
from pykeen.triples import CoreTriplesFactory
from torch import Tensor

from kgcf.baselines.contract import Baseline, EpochKeeper, ReachScorer, prime_adam
from kgcf.baselines.embeddings.interactions import ranks_without_table
from kgcf.baselines.embeddings.training_loops import AllTails, SampledNegatives, TailQuestions
from kgcf.data.graph import KnowledgeGraph

_HELD = 4  # copies of a [B, N, D] table that a distance needs at a time, or of the scores [B, N] where there is none
_BYTES = 4


@dataclass(frozen=True, eq=False)
class Scheme:
    """How a model is trained and asked."""

    factory: CoreTriplesFactory = field(repr=False)  # the triples that it learns
    relation_count: int  # R, without inverses
    order: NDArray[np.int64] = field(repr=False)  # [2R] the model's number of our relation, where it is reciprocal
    batch_size: int
    learning_rate: float
    negatives: int | None = None  # None: all tails at once, reciprocal relations added
    label_smoothing: float = 0.0
    offset: float = 0.0  # added to scores, so that their sigmoid is what the loss compares with the truth

    @property
    def reciprocal(self) -> bool:
        """Whether inverse relations have vectors of their own; else a head is asked for as a head."""
        return self.negatives is None


class PykeenBaseline(Baseline):
    """score(h, r, ·) of a PyKEEN model, whose entities are those of the train graph."""

    knows_entities: ClassVar[bool] = True

    def __init__(self, model: ERModel, scheme: Scheme) -> None:
        super().__init__()
        self.model = model
        self.scheme = scheme
        self.optimiser = torch.optim.Adam(model.get_grad_params(), lr=scheme.learning_rate)
        prime_adam(self.optimiser)

    def refresh(self) -> None:
        """Encoders keep the vectors that they have made: forget them."""
        self.model.post_parameter_update()

    def fit(self, epochs: EpochKeeper) -> None:
        """One call of PyKEEN's loop for all epochs; its callbacks tell the keeper."""
        if not epochs.remaining:
            return
        scheme, report = self.scheme, _Reporter(self, epochs)
        shared: dict[str, Any] = {
            "model": self.model,
            "triples_factory": scheme.factory,
            "optimizer": self.optimiser,
            "automatic_memory_optimization": False,
            "begin": report.begin,
        }
        if scheme.negatives is None:
            questions = TailQuestions.of(scheme.factory, max(2, scheme.batch_size))  # a batch norm needs two
            loop: Any = AllTails(questions=questions, **shared)
        else:
            drawn = {"num_negs_per_pos": scheme.negatives, "filtered": True}  # train triples are no negatives
            loop = SampledNegatives(negative_sampler_kwargs=drawn, **shared)
        with tempfile.TemporaryDirectory() as unused, _without_deprecations():
            try:
                loop.train(
                    scheme.factory,
                    num_epochs=epochs.remaining,
                    batch_size=max(2, min(scheme.batch_size, scheme.factory.num_triples)),
                    label_smoothing=scheme.label_smoothing,
                    continue_training=True,  # weights and moments are those that we have made or read
                    use_tqdm=False,
                    checkpoint_directory=unused,  # PyKEEN makes it in any case
                    callbacks=report,
                    pin_memory=False,
                    drop_last=False,
                )
            except NonFiniteLossError:
                epochs.step(report.total, float("nan"), 1)
            except _EnoughError:
                pass

    def scores(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> Tensor:
        """[B, N] scores of all tails, on the model's device."""
        scheme, device = self.scheme, self.device
        if self.model.training:
            self.model.eval()
            self.refresh()
        asked = torch.from_numpy(np.stack([heads, scheme.order[relations]], axis=1)).to(device)
        with torch.no_grad():
            if scheme.reciprocal:
                return self.model.score_t(asked) + scheme.offset  # type: ignore[no-any-return]
            inverse = asked[:, 1] >= scheme.relation_count
            found = torch.empty(len(asked), scheme.factory.num_entities, device=device)
            if not inverse.all():
                found[~inverse] = self.model.score_t(asked[~inverse])
            if inverse.any():
                given = torch.stack([asked[inverse, 1] - scheme.relation_count, asked[inverse, 0]], dim=1)
                found[inverse] = self.model.score_h(given)
            return found + scheme.offset

    def scorer(self, graph: KnowledgeGraph, memory: float) -> ReachScorer:
        """The vectors know nothing of the observed graph: it is that of training, or has its first entities."""
        return EmbeddingScorer(self, graph.entity_count, memory)

    @property
    def width(self) -> int:
        """Numbers that a distance between two entities is made of."""
        return int(sum(np.prod(part.shape, dtype=int) for part in self.model.entity_representations)) * 2


class EmbeddingScorer:
    """Scores the first `count` entities, a few questions at a time."""

    def __init__(self, baseline: PykeenBaseline, count: int, memory: float) -> None:
        self._baseline = baseline
        self._count = count
        width = 1 if ranks_without_table(baseline.model.interaction, baseline.device) else baseline.width
        held = baseline.scheme.factory.num_entities * width * _HELD * _BYTES
        self._rows = max(1, int(memory / held))

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] scores."""
        scores = np.empty((len(heads), self._count), dtype=np.float32)
        for first in range(0, len(heads), self._rows):
            part = slice(first, first + self._rows)
            scores[part] = self._baseline.scores(heads[part], relations[part])[:, : self._count].cpu().numpy()
        return scores

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[B, N] scores; vectors say something about every entity."""
        scores = self.score_tails(heads, relations)
        return scores, np.ones(scores.shape, dtype=bool)


class _EnoughError(Exception):
    """The keeper wants no further epoch."""


class _Reporter(TrainingCallback):  # type: ignore[misc]
    """Tells the keeper what PyKEEN does."""

    def __init__(self, baseline: PykeenBaseline, epochs: EpochKeeper) -> None:
        super().__init__()
        self._baseline = baseline
        self._epochs = epochs
        self.total = 1

    def begin(self, total: int) -> None:
        """An epoch of so many steps begins."""
        self.total = total
        self._epochs.begin()

    def on_batch(self, epoch: int, batch: Any, batch_loss: float, **kwargs: Any) -> None:  # noqa: ANN401
        """A step's loss is known."""
        count = len(batch["pairs"] if "pairs" in batch else batch["positives"])
        self._epochs.step(self.total, batch_loss, count)

    def post_epoch(self, epoch: int, epoch_loss: float, **kwargs: Any) -> None:  # noqa: ANN401
        """The epoch is done; vectors that validation made of it carry no gradients."""
        going = self._epochs.end()
        self._baseline.refresh()
        if not going:
            raise _EnoughError


@contextmanager
def _without_deprecations() -> Iterator[None]:
    """PyKEEN's loops call PyKEEN in a way that it warns of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Training instances are always shuffled", DeprecationWarning)
        yield
