"""What one request may ask for, and for how long: the explorer stays quick for everybody else."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of a server; a request beyond one of them is refused with a sentence."""

    body: int = 64_000  # bytes of a request
    text: int = 20_000  # characters of a name or a note
    top: int = 500  # answers of one question
    paths: int = 20  # paths of one explanation
    shown: int = 200  # links on one page of a review
    proposals: int = 20_000  # links of one completion
    waiting: int = 64  # requests in line for one model
    seconds: float = 30.0  # that a request may take, the time in line included
    connections: int = 200  # requests at once, whatever they ask for
    workspace: float = 0.2e9  # bytes that one thread may hold to compute


LIMITS = Limits()
