"""The loop of every baseline: epochs that the model runs itself, validation, the best weights kept, checkpoints."""

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kgcf.baselines.contract import Baseline
from kgcf.errors import TrainingError
from kgcf.machine.interrupts import undisturbed
from kgcf.training.checkpoint import Checkpoint, Progress, load_checkpoint, save_checkpoint
from kgcf.training.loop import Listener, Validate
from kgcf.training.settings import TrainingSettings

State = dict[str, Tensor]
_ALL = 2**63 - 1  # torch's seeds are positive
_UNKNOWN = 0.3  # share of the time that is kept for what follows as long as no validation has been timed


class _TimeIsUpError(Exception):
    """The time that was given ends within this epoch, which has `total` steps."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self.total = total


@dataclass
class BaselineTrainer:
    """Trains one model; it is the keeper of its epochs.

    No epoch begins that would, with what follows the training, end after `seconds`, and one that does is broken off
    and counts as it is. What follows takes as long as `following` validations: ranking the test triples, fitting a
    calibration.
    """

    model: Baseline
    settings: TrainingSettings
    validate: Validate | None
    checkpoint: Path | None = None
    key: str = ""
    listener: Listener = field(default_factory=Listener)
    seconds: float | None = None
    following: float = 0.0

    def __post_init__(self) -> None:
        self._progress = Progress()
        self._best = copy_state(self.model)
        self._whole = self._snapshot()
        self._saved_at = time.monotonic()
        self._started = time.monotonic()
        self._epoch_started = self._started

    @property
    def progress(self) -> Progress:
        """Where the run stands."""
        return self._progress

    @property
    def remaining(self) -> int:
        """How many epochs are still to be trained."""
        return 0 if self._progress.finished else self.settings.epochs - self._progress.epoch

    def resume(self) -> None:
        """Continue from the checkpoint: the same weights, moments and random streams as without the stop."""
        assert self.checkpoint is not None
        optimiser = self.model.optimiser or torch.optim.Adam([torch.zeros(1)])
        found = load_checkpoint(self.checkpoint, optimiser, self.key)
        put_state(self.model, found.weights)
        if self.model.optimiser is not None:
            self.model.optimiser.load_state_dict(found.optimiser)
        self._best, self._progress = found.best, found.progress
        self._whole = self._snapshot()

    def run(self) -> Progress:
        """Train to the end; leaves the best weights in the model. A stop costs at most the epoch that was running."""
        self._started = time.monotonic()
        try:
            with torch.random.fork_rng(devices=[]), torch.enable_grad():
                if not self._progress.finished:
                    self._fit()
        except KeyboardInterrupt:
            self._save()
            raise
        put_state(self.model, self._best)
        return self._progress

    def _fit(self) -> None:
        """Let the model train; an epoch for which there is no time left ends early, and is the last.

        That is said, and `epoch_share` of its entry is what there was of it.
        """
        progress = self._progress
        try:
            self.model.fit(self)
        except _TimeIsUpError as up:
            self.listener.warn(
                f"The time was up within epoch {progress.epoch + 1}: it was broken off after {progress.step:,} of "
                f"{up.total:,} steps and counts as it is. With a longer --time it would be trained to its end."
            )
            self._end({"epoch_share": progress.step / up.total})

    def begin(self) -> None:
        """Seed the epoch: every one has a stream of its own, so that a resumed run draws what it would have drawn."""
        words = np.random.SeedSequence((self.settings.seed, self._progress.epoch)).generate_state(1, np.uint64)
        torch.manual_seed(int(words[0]) & _ALL)
        self._epoch_started = time.monotonic()

    def step(self, total: int, loss: float, questions: int) -> None:
        """Count a step; a loss that is no number stops the training."""
        progress = self._progress
        if not math.isfinite(loss):
            raise TrainingError(
                f"The loss became {loss} in epoch {progress.epoch + 1}, step {progress.step + 1}. "
                "Lower training.learning_rate."
            )
        progress.step += 1
        progress.steps += 1
        for name, value in (("factual", loss * questions), ("queries", questions)):
            progress.running[name] = progress.running.get(name, 0.0) + value
        progress.running["seconds"] = time.monotonic() - self._epoch_started
        self.listener.step(
            progress.epoch * total + progress.step, self.settings.epochs * total, progress.epoch, self._means()
        )
        if progress.step < total and self._out_of_time(progress.running["seconds"], 0.0):
            raise _TimeIsUpError(total)

    def end(self) -> bool:
        """Validate, keep the best weights, note the history, decide whether to go on, save now and then."""
        return self._end({})

    def _end(self, more: dict[str, float]) -> bool:
        """The same, with `more` to note about the epoch."""
        progress = self._progress
        progress.running["seconds"] = time.monotonic() - self._epoch_started
        entry: dict[str, float] = {"epoch": progress.epoch + 1, "steps": progress.steps, **self._means(), **more}
        started = time.monotonic()
        score = self.validate() if self.validate is not None else None
        if score is not None:
            entry |= {"validation_mrr": score, "validation_seconds": time.monotonic() - started}
        with undisturbed():
            if score is None or score > progress.best:
                self._best = copy_state(self.model)
                progress.best, progress.best_epoch, progress.waiting = (score or 0.0), progress.epoch + 1, 0
            else:
                progress.waiting += 1
            progress.history.append(entry)
            progress.epoch, progress.step, progress.running = progress.epoch + 1, 0, {}
            patience = self.settings.patience
            out_of_patience = patience is not None and progress.waiting >= patience
            no_time = self._out_of_time(0.0, entry["seconds"])
            progress.finished = progress.epoch >= self.settings.epochs or out_of_patience or no_time
            self._whole = self._snapshot()
        if progress.finished or time.monotonic() - self._saved_at >= self.settings.checkpoint_seconds:
            self._save()
        self.listener.epoch(entry)
        return not progress.finished

    def _out_of_time(self, running: float, next_epoch: float) -> bool:
        """Whether what was done, what is meant to be done and what follows take longer than was given."""
        if self.seconds is None:
            return False
        history = self._progress.history
        done = sum(entry["seconds"] + entry.get("validation_seconds", 0.0) for entry in history)
        after = _UNKNOWN * self.seconds
        if history and "validation_seconds" in history[-1]:
            after = (self.following + 1) * history[-1]["validation_seconds"]
        return done + running + next_epoch + after > self.seconds

    def _means(self) -> dict[str, float]:
        """The epoch's mean loss and questions per second so far."""
        sums = self._progress.running
        queries, seconds = sums.get("queries", 0.0), max(sums.get("seconds", 0.0), 1e-9)
        means = {"factual": sums["factual"] / max(queries, 1)} if "factual" in sums else {}
        counts = {"queries": queries, "unreached": 0.0, "impossible": 0.0, "seconds": seconds}
        return means | counts | {"queries_per_second": queries / seconds}

    def _snapshot(self) -> Checkpoint:
        """The state between two epochs; the epoch that follows may be broken off."""
        moments: dict[str, object] = {"state": {}}
        if self.model.optimiser is not None:
            state = self.model.optimiser.state_dict()["state"]
            moments = {"state": {i: {k: v.clone() for k, v in row.items()} for i, row in state.items()}}
        return Checkpoint(_copied(self._progress), copy_state(self.model), self._best, moments)

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        if self.checkpoint is not None:
            save_checkpoint(self.checkpoint, self._whole, self.key)


def _copied(progress: Progress) -> Progress:
    return replace(progress, running=dict(progress.running), history=list(progress.history))


def copy_state(model: Baseline) -> State:
    """A copy of all parameters and buffers by name; shared ones once."""
    return {name: tensor.detach().clone() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}


def put_state(model: Baseline, state: State) -> None:
    """Overwrite all parameters and buffers by name."""
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            tensor.copy_(state[name].view(tensor.shape))
    model.refresh()
