"""How often the reviewers agree with the model, by relation and by probability: their own check of the calibration."""

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from kgcf.web.review.store import ReviewedLink

_BOUNDS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_ERRORS = 1.959964  # standard errors to either side of a 95 % interval


@dataclass(frozen=True)
class Precision:
    """Judged links of one kind; those that were left undecided do not count."""

    name: str
    accepted: int
    rejected: int
    share: float  # accepted among the judged
    said: float  # the mean probability that the model gave them
    low: float  # 95 % interval of the share accepted (Wilson)
    high: float

    @property
    def judged(self) -> int:
        """Accepted and rejected."""
        return self.accepted + self.rejected


@dataclass(frozen=True)
class Precisions:
    """All judged links together, by relation (most judged first) and by what the model said (rising)."""

    overall: Precision | None  # None: nothing is judged yet
    by_relation: tuple[Precision, ...]
    by_probability: tuple[Precision, ...]


def measure_precision(decided: Sequence[ReviewedLink]) -> Precisions:
    """Count what was accepted and rejected."""
    judged = [link for link in decided if link.decision is not None and link.decision.verdict != "leave"]
    by_relation = _grouped(judged, lambda link: link.answer.relation_name)
    by_probability = _grouped(judged, _bin)
    return Precisions(
        overall=_count("all", judged) if judged else None,
        by_relation=tuple(sorted(by_relation, key=lambda group: (-group.judged, group.name))),
        by_probability=tuple(sorted(by_probability, key=lambda group: group.said)),
    )


def _bin(link: ReviewedLink) -> str:
    assert link.decision is not None
    said = link.decision.probability
    low, high = next(pair for pair in itertools.pairwise(_BOUNDS) if said <= pair[1])
    return f"{low:.0%} – {high:.0%}"


def _grouped(links: Sequence[ReviewedLink], key: Callable[[ReviewedLink], Hashable]) -> list[Precision]:
    groups: dict[Hashable, list[ReviewedLink]] = {}
    for link in links:
        groups.setdefault(key(link), []).append(link)
    return [_count(str(name), members) for name, members in groups.items()]


def _count(name: str, links: Sequence[ReviewedLink]) -> Precision:
    decisions = [link.decision for link in links if link.decision is not None]
    accepted = sum(decision.verdict == "accept" for decision in decisions)
    said = sum(decision.probability for decision in decisions) / len(decisions)
    judged = len(decisions)
    return Precision(name, accepted, judged - accepted, accepted / judged, said, *wilson(accepted, judged))


def wilson(accepted: int, judged: int) -> tuple[float, float]:
    """The 95 % interval of a share, honest also where few were judged."""
    share, spread = accepted / judged, _ERRORS**2 / judged
    middle = (share + spread / 2) / (1 + spread)
    half = _ERRORS * math.sqrt(share * (1 - share) / judged + spread / (4 * judged)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
