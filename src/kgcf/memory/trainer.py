"""Training a memory: epochs of Adagrad steps, the best epoch kept, checkpoints, exact resume."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import KgcfError
from kgcf.machine.interrupts import undisturbed
from kgcf.memory.checkpoint import MemoryCheckpoint, MemoryProgress, load_checkpoint, save_checkpoint
from kgcf.memory.complex_model import ComplEx
from kgcf.memory.gradients import differentiate
from kgcf.memory.questions import Questions
from kgcf.memory.settings import MemorySettings

Validate = Callable[[ComplEx], float]
OnStep = Callable[[int, int, int, dict[str, float]], None]  # done, total, epoch from 0, means so far
OnEpoch = Callable[[dict[str, float]], None]
_STREAM = 13  # keeps the memory's random numbers apart from those of other stages with the same seed


def _unheard_step(done: int, total: int, epoch: int, means: dict[str, float]) -> None:
    """Nobody watches."""


def _unheard_epoch(entry: dict[str, float]) -> None:
    """Nobody listens."""


@dataclass
class MemoryTrainer:
    """One training. `key` ties checkpoints to settings and data; without a `checkpoint` path nothing is written."""

    graph: KnowledgeGraph
    settings: MemorySettings
    validate: Validate | None = None
    checkpoint: Path | None = None
    key: str = ""
    checkpoint_seconds: float = 60.0
    on_step: OnStep = _unheard_step
    on_epoch: OnEpoch = _unheard_epoch
    progress: MemoryProgress = field(default_factory=MemoryProgress)

    def __post_init__(self) -> None:
        chosen = self.settings
        self.questions = Questions.of(self.graph)
        count = len(self.questions.known)
        self._model = ComplEx.draw(count, self.graph.relation_count, chosen.rank, chosen.init, chosen.seed)
        self._squares = ComplEx(*map(torch.zeros_like, (self._model.entities, self._model.relations)))
        self._best = self._model.copy()
        self._saved_at = time.monotonic()
        self._whole = True  # False while numbers and counts do not belong together

    def resume(self) -> None:
        """Continue from the checkpoint: the same numbers and random streams as without the stop."""
        assert self.checkpoint is not None
        found = load_checkpoint(self.checkpoint, self.key)
        self._model, self._squares, self._best, self.progress = found.model, found.squares, found.best, found.progress

    def run(self) -> ComplEx:
        """Train to the end; the numbers of the epoch that validated best. Ctrl-C leaves a checkpoint."""
        try:
            with torch.no_grad():
                while self.progress.epoch < self.settings.epochs:
                    self._run_epoch()
        except KeyboardInterrupt:
            if self._whole:
                self._save()
            raise
        return self._best

    def _run_epoch(self) -> None:
        progress, chosen, started = self.progress, self.settings, time.monotonic()
        before = progress.running.get("seconds", 0.0)
        generator = np.random.default_rng([chosen.seed, _STREAM, progress.epoch])
        steps = self.questions.step_count(chosen.answers, chosen.batch_size)
        for rows in self.questions.steps(chosen.answers, chosen.batch_size, generator, progress.step):
            gradient = differentiate(self._model, rows, chosen.n3, chosen.relation_weight)
            self._check(gradient.tail_loss + gradient.relation_loss)
            with undisturbed(), self._changing():
                self._move(self._model.entities, self._squares.entities, gradient.entities)
                self._move(self._model.relations, self._squares.relations, gradient.relations)
                self._tally(len(rows.tails), gradient.tail_loss, gradient.relation_loss)
                progress.step += 1
            progress.running["seconds"] = before + time.monotonic() - started
            done = progress.epoch * steps + progress.step
            self.on_step(done, chosen.epochs * steps, progress.epoch, self._means())
            if time.monotonic() - self._saved_at >= self.checkpoint_seconds:
                self._save()
        self._finish_epoch()

    def _move(self, numbers: Tensor, squares: Tensor, gradient: Tensor) -> None:
        """One step of Adagrad, as torch's own computes it; the gradient's memory is used up."""
        squares.addcmul_(gradient, gradient)
        numbers.addcdiv_(gradient, squares.sqrt().add_(1e-10), value=-self.settings.learning_rate)

    def _check(self, loss: float) -> None:
        if not math.isfinite(loss):
            where = f"epoch {self.progress.epoch + 1}, step {self.progress.step + 1}"
            raise KgcfError(f"The loss of the memory became {loss} in {where}. Lower memory.learning_rate.")

    def _tally(self, answers: int, tail_loss: float, relation_loss: float) -> None:
        running = self.progress.running
        for name, value in (("answers", answers), ("tails", tail_loss), ("relations", relation_loss)):
            running[name] = running.get(name, 0.0) + value

    def _means(self) -> dict[str, float]:
        """The epoch's losses per answer, and answers per second, so far."""
        sums = self.progress.running
        answers, seconds = max(sums.get("answers", 0.0), 1.0), sums.get("seconds", 0.0)
        means = {name: sums.get(name, 0.0) / answers for name in ("tails", "relations")}
        return means | {"seconds": seconds, "queries_per_second": answers / max(seconds, 1e-9)}

    def _finish_epoch(self) -> None:
        progress = self.progress
        entry: dict[str, float] = {"epoch": progress.epoch + 1, **self._means()}
        started = time.monotonic()
        score = None if self.validate is None else self.validate(self._model)
        if score is not None:
            entry |= {"validation_mrr": score, "validation_seconds": time.monotonic() - started}
        with undisturbed(), self._changing():
            if score is None or score > progress.best:
                self._best = self._model.copy()
                progress.best, progress.best_epoch = (score or 0.0), progress.epoch + 1
            progress.history.append(entry)
            progress.epoch, progress.step, progress.running = progress.epoch + 1, 0, {}
        self._save()
        self.on_epoch(entry)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A block after which the state is whole again; if it is left in the middle, the state is not saved."""
        self._whole = False
        yield
        self._whole = True

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        if self.checkpoint is not None:
            state = MemoryCheckpoint(self._model, self._squares, self._best, self.progress)
            save_checkpoint(self.checkpoint, state, self.key)
