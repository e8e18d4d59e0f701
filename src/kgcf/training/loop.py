"""The training loop: epochs of steps, validation, the best model kept, checkpoints, a clean stop."""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kgcf.errors import KgcfWarning, NothingLearnedError, TrainingError
from kgcf.machine.devices import worker_threads
from kgcf.machine.interrupts import undisturbed
from kgcf.propagation.workers import Workers
from kgcf.training.averaging import WeightAverage
from kgcf.training.batches import make_batch, stream
from kgcf.training.checkpoint import Checkpoint, Progress, copy_weights, load_checkpoint, put_weights, save_checkpoint
from kgcf.training.distributed import World
from kgcf.training.passes import Asked, Passes
from kgcf.training.reach import advise_depth
from kgcf.training.settings import TrainingSettings
from kgcf.training.step import PER_QUERY, GradientComputer, StepContext, Sums

Validate = Callable[[], float]
EARLY_STEPS = 20  # after so many steps somebody is told if nearly all queries are left out
NEARLY_ALL = 0.9  # of the queries


class Listener:
    """Hears what happens during training; this one ignores it, the command line shows it."""

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        """A gradient step is done; `means` has the epoch's mean loss terms and queries per second so far."""

    def epoch(self, entry: dict[str, float]) -> None:
        """An epoch is done; the entry has its losses, validation MRR and times."""

    def warn(self, text: str) -> None:
        """Something is about to go wrong; nobody listening, it becomes a Python warning."""
        warnings.warn(text, KgcfWarning, stacklevel=3)


@dataclass
class Trainer:
    """One run. `key` ties checkpoints to configuration and data; `folder` None: nothing is written."""

    context: StepContext
    settings: TrainingSettings
    validate: Validate | None
    world: World = field(default_factory=World)
    checkpoint: Path | None = None
    key: str = ""
    listener: Listener = field(default_factory=Listener)

    def __post_init__(self) -> None:
        self._model = self.context.model
        objective = self.context.objective
        self._passes = Passes(self.context.graph, objective.answers, objective.answers_share)
        self._optimiser = torch.optim.Adam(self._model.parameters(), lr=self.settings.learning_rate)
        self._progress = Progress(processes=self.world.size)
        self._best: dict[str, Tensor] = copy_weights(self._model)
        self._average = WeightAverage(self.settings)
        self._saved_at = time.monotonic()
        self._whole = True  # False while weights, moments and counts do not belong together

    @property
    def progress(self) -> Progress:
        """Where the run stands."""
        return self._progress

    def resume(self) -> None:
        """Continue from the checkpoint: the same weights, moments and random streams as without the stop."""
        assert self.checkpoint is not None
        found = load_checkpoint(self.checkpoint, self._optimiser, self.key)
        self.world.check_processes(found.progress.processes, found.progress.finished, self.checkpoint.parent)
        put_weights(self._model, found.weights)
        self._optimiser.load_state_dict(found.optimiser)
        self._best, self._progress = found.best, found.progress
        self._average.mean, self._average.taken = found.mean, found.averaged

    def run(self) -> Progress:
        """Train to the end, or until patience runs out; leaves the best weights in the model.

        An interrupt is followed by a checkpoint, except where it came, against all efforts, inside a change of the
        state: then the last checkpoint stays.
        """
        computer = GradientComputer(self.context, worker_threads(self._model.device, self.settings.threads))
        gradients = torch.is_grad_enabled()
        try:
            # Threads are for parts of a batch; torch's own would only wait for each other. Gradients are switched on
            # again because an interrupt of an earlier run may have left them off, in a notebook for instance.
            with Workers(1), torch.enable_grad():
                while not self._progress.finished:
                    self._run_epoch(computer)
        except KeyboardInterrupt:
            if self._whole:
                self._save()
            raise
        finally:  # an interrupt may have come between torch's switching gradients off and on again
            torch.set_grad_enabled(gradients)
        put_weights(self._model, self._best)
        return self._progress

    def _run_epoch(self, computer: GradientComputer) -> None:
        progress, started = self._progress, time.monotonic()
        before = progress.running.get("seconds", 0.0)
        for batches in self._remaining_steps():
            self._step(computer, batches)
            if progress.steps == EARLY_STEPS:
                self._warn_if_few_contribute()
            progress.running["seconds"] = before + time.monotonic() - started
            self.listener.step(progress.steps, self._total_steps(), progress.epoch, self._means())
            if time.monotonic() - self._saved_at >= self.settings.checkpoint_seconds:
                self._save()
        self._stop_unless_learning()
        if progress.epoch == 0 and progress.steps < EARLY_STEPS:
            self._warn_if_few_contribute()
        self._finish_epoch()

    def _warn_if_few_contribute(self) -> None:
        """Say after the first steps of a run if nearly all of their queries were left out."""
        contributed, left_out = self._contributions()
        if self.world.leads and left_out > NEARLY_ALL * (contributed + left_out):
            self.listener.warn(f"{self._left_out()} after {self._progress.steps} steps. {self._advice()}")

    def _stop_unless_learning(self) -> None:
        """Refuse to go on if no query has contributed to the weights in this epoch, nor in any before."""
        if not self._contributions()[0] and not any(entry["queries"] for entry in self._progress.history):
            raise NothingLearnedError(
                f"{self._left_out()}, so nothing was learned and training stops. {self._advice()}"
            )

    def _contributions(self) -> tuple[int, int]:
        """How many queries of this epoch contributed, and how many were left out."""
        sums = self._progress.running
        return int(sums.get("queries", 0)), int(sums.get("unreached", 0) + sums.get("impossible", 0))

    def _left_out(self) -> str:
        (contributed, left_out), layers = self._contributions(), self._model.encoder.settings.layers
        unreached, impossible = (int(self._progress.running.get(why, 0)) for why in ("unreached", "impossible"))
        return (
            f"{left_out:,} of {contributed + left_out:,} training queries were left out ({unreached:,} because no path "
            f"of at most {layers} edges leads to the answer, {impossible:,} because every entity is an answer)"
        )

    def _advice(self) -> str:
        context, layers = self.context, self._model.encoder.settings.layers
        return advise_depth(context.graph, layers, context.objective.negatives, context.remove, self.settings.seed)

    def _remaining_steps(self) -> Iterator[list[Asked]]:
        """What every batch of every step that this epoch still has to do asks."""
        settings, progress = self.settings, self._progress
        epoch, count = self._passes.epoch(settings.seed, progress.epoch), len(self._passes)
        size, joined = settings.batch_size, settings.accumulate
        while progress.step < self._steps_per_epoch() and progress.steps < self._total_steps():
            first = progress.step * size * joined
            positions = np.arange(first, first + size * joined)
            positions = positions[positions < count] if settings.batches_per_epoch is None else positions % count
            yield [epoch.take(positions[i : i + size]) for i in range(0, len(positions), size)]

    def _step(self, computer: GradientComputer, batches: list[Asked]) -> None:
        """Gradients of the batches, joined over batches and processes, and one move of Adam."""
        progress, context, world = self._progress, self.context, self.world
        joined: list[tuple[Sums, Sums]] = []
        for index, asked in enumerate(batches):
            generator = stream(self.settings.seed, progress.epoch, progress.step, index)
            batch = make_batch(context.graph, asked, context.rules, generator)
            gives = (progress.steps + index) % world.size == world.rank
            joined.append(computer.compute(batch, world.rank, world.size, gives))
        (total, discrepancy), *others = joined
        for more, more_discrepancy in others:
            total.add(more)
            discrepancy.add(more_discrepancy)
        world.share(total)
        if context.objective.beta > 0:
            world.share(discrepancy)
        with undisturbed(), self._changing():
            self._move(total, discrepancy)
            self._tally(total, discrepancy, sum(map(len, batches)))
            progress.step += 1
            progress.steps += 1
            self._average.take(self._model, progress.steps, self._total_steps())

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A block after which the state is whole again; if it is left in the middle, the state is not saved."""
        self._whole = False
        yield
        self._whole = True

    def _move(self, total: Sums, discrepancy: Sums) -> None:
        """One step of Adam along the gradient of the terms' means plus β times that of the discrepancy."""
        for term, value in (total.terms | discrepancy.terms).items():
            if not math.isfinite(value):
                where = f"epoch {self._progress.epoch + 1}, step {self._progress.step + 1}"
                raise TrainingError(
                    f"The {term} loss became {value} in {where}. "
                    "Lower training.learning_rate, or look for extreme weights in the data."
                )
        if not total.queries and not discrepancy.queries and "context" not in total.terms:
            return
        beta = self.context.objective.beta / max(discrepancy.queries, 1)
        means = total.mean_gradients(self._model)
        for parameter, mean, extra in zip(self._model.parameters(), means, discrepancy.gradients, strict=True):
            parameter.grad = mean + beta * extra
        for group in self._optimiser.param_groups:
            group["lr"] = self._learning_rate()
        self._optimiser.step()

    def _learning_rate(self) -> float:
        """Constant, or a half cosine from the full rate to 0 over all steps of the run."""
        if self.settings.schedule == "constant":
            return self.settings.learning_rate
        done = self._progress.steps / self._total_steps()
        return self.settings.learning_rate * 0.5 * (1 + math.cos(math.pi * done))

    def _tally(self, total: Sums, discrepancy: Sums, passes: int) -> None:
        counts = {
            "passes": passes,
            "queries": total.queries,
            "unreached": total.unreached,
            "impossible": total.impossible,
            "compared": discrepancy.queries,
        }
        for name, value in (total.terms | discrepancy.terms | counts).items():
            self._progress.running[name] = self._progress.running.get(name, 0.0) + value

    def _means(self) -> dict[str, float]:
        """The epoch's losses per query, what was left out, and queries per second, so far."""
        sums = self._progress.running
        queries, seconds = sums.get("queries", 0), max(sums.get("seconds", 0.0), 1e-9)
        computed = queries + sums.get("unreached", 0)
        over = {term: max(computed if term == "context" else queries, 1) for term in PER_QUERY}
        means: dict[str, float] = {term: sums[term] / over[term] for term in PER_QUERY if term in sums}
        if "discrepancy" in sums:
            means["discrepancy"] = sums["discrepancy"] / max(sums.get("compared", 0), 1)
        means |= {name: sums.get(name, 0.0) for name in ("passes", "queries", "unreached", "impossible", "seconds")}
        return means | {"queries_per_second": (computed + sums.get("impossible", 0)) / seconds}

    def _finish_epoch(self) -> None:
        """Validate, keep the best weights, note the history, decide whether to go on, save."""
        progress = self._progress
        entry: dict[str, float] = {"epoch": progress.epoch + 1, "steps": progress.steps, **self._means()}
        started = time.monotonic()
        with self._mean_in_place():
            score = self.validate() if self.validate is not None else None
        if score is not None:
            entry |= {"validation_mrr": score, "validation_seconds": time.monotonic() - started}
        with undisturbed(), self._changing():
            if score is None or score > progress.best:
                self._best = self._average.weights(self._model)
                progress.best, progress.best_epoch, progress.waiting = (score or 0.0), progress.epoch + 1, 0
            else:
                progress.waiting += 1
            progress.history.append(entry)
            progress.epoch, progress.step, progress.running = progress.epoch + 1, 0, {}
            out_of_patience = self.settings.patience is not None and progress.waiting >= self.settings.patience
            progress.finished = progress.steps >= self._total_steps() or out_of_patience
        self._save()
        self.listener.epoch(entry)

    @contextmanager
    def _mean_in_place(self) -> Iterator[None]:
        """A block in which the model has the mean weights, where there are any; afterwards it has its own again."""
        if not self._average.mean:
            yield
            return
        own = copy_weights(self._model)
        self._whole = False
        try:
            put_weights(self._model, self._average.mean)
            yield
        finally:
            with undisturbed():
                put_weights(self._model, own)
                self._whole = True

    def _steps_per_epoch(self) -> int:
        step = self.settings.batch_size * self.settings.accumulate
        return self.settings.batches_per_epoch or math.ceil(len(self._passes) / step)

    def _total_steps(self) -> int:
        settings = self.settings
        steps = settings.epochs * self._steps_per_epoch()
        if settings.budget is None:
            return steps
        return min(steps, math.ceil(settings.budget / (settings.batch_size * settings.accumulate)))

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        if self.checkpoint is not None and self.world.leads:
            mean, adam = self._average, self._optimiser.state_dict()
            state = Checkpoint(self._progress, copy_weights(self._model), self._best, adam, mean.mean, mean.taken)
            save_checkpoint(self.checkpoint, state, self.key)
