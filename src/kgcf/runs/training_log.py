"""log.jsonl: what every epoch came to, warnings, and once a minute where the run is, whoever else is listening."""

import time
from collections.abc import Mapping

from kgcf.progress import Clock, Minutes, Position
from kgcf.runs.folder import RunFolder
from kgcf.training.loop import Listener


class TrainingLog(Listener):
    """Writes finished epochs, warnings, and once a minute the position, to the run's log; passes on what it heard.

    Other processes only pass on.
    """

    def __init__(self, folder: RunFolder, listener: Listener, leads: bool, clock: Clock = time.monotonic) -> None:
        self._folder = folder
        self._listener = listener
        self._leads = leads
        self._minutes = Minutes(self._note, clock)
        self._means: dict[str, float] = {}

    def _note(self, position: Position) -> None:
        log_position(self._folder, "training", position, self._means)

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        """Pass on a step."""
        if self._leads:
            self._means = {"within_epoch": epoch + 1, **means}
            self._minutes.at(done, total)
        self._listener.step(done, total, epoch, means)

    def epoch(self, entry: dict[str, float]) -> None:
        """Write an epoch and pass it on."""
        if self._leads:
            self._folder.log(entry)
        self._listener.epoch(entry)

    def warn(self, text: str) -> None:
        """Write a warning and pass it on."""
        if self._leads:
            self._folder.log({"stage": "training", "warning": text})
        self._listener.warn(text)


def log_position(folder: RunFolder, stage: str, position: Position, more: Mapping[str, float] | None = None) -> None:
    """A line of the log that says where a stage is; unlike that of an epoch it has no `epoch`."""
    left = position.seconds_left
    entry = {"stage": stage, "share": round(position.share, 4), "seconds_left": None if left is None else round(left)}
    folder.log({**entry, **(more or {})})
