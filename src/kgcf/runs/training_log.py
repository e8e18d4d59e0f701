"""log.jsonl: what every epoch came to, written in any way of training, whoever else is listening."""

from kgcf.runs.folder import RunFolder
from kgcf.training.loop import Listener


class TrainingLog(Listener):
    """Writes every finished epoch to the run's log, then passes on what it heard; other processes only pass on."""

    def __init__(self, folder: RunFolder, listener: Listener, leads: bool) -> None:
        self._folder = folder
        self._listener = listener
        self._leads = leads

    def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
        """Pass on a step."""
        self._listener.step(done, total, epoch, means)

    def epoch(self, entry: dict[str, float]) -> None:
        """Write an epoch and pass it on."""
        if self._leads:
            self._folder.log(entry)
        self._listener.epoch(entry)

    def warn(self, text: str) -> None:
        """Pass on a warning."""
        self._listener.warn(text)
