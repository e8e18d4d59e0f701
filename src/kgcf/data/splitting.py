"""Split one file of triples into train, valid and test, without giving the answers away."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.mirrors import Mirror, find_mirrors, mirror_groups
from kgcf.errors import SettingsError
from kgcf.machine.compiled import kernel

TRAIN, VALID, TEST = 0, 1, 2


@dataclass(frozen=True)
class SplitSettings:
    """How a single file is split."""

    valid: float = 0.1  # share of the triples to validate on
    test: float = 0.1  # share of the triples to test on
    seed: int = 0
    allow_inverse_leak: bool = False  # let a fact and its mirror fall into different splits

    def __post_init__(self) -> None:
        if not (0 <= self.valid < 1 and 0 <= self.test < 1 and self.valid + self.test < 1):
            raise SettingsError(
                f"The shares of valid ({self.valid}) and test ({self.test}) must be at least 0 and add up to less "
                "than 1, so that something is left to train on."
            )


@dataclass(frozen=True, eq=False)
class SplitResult:
    """Which split every triple belongs to, and what was found on the way."""

    assignment: NDArray[np.int8] = field(repr=False)  # [E] TRAIN, VALID or TEST
    mirrors: tuple[Mirror, ...]

    def rows(self, part: int) -> NDArray[np.int64]:
        """The triples of one part, ascending."""
        return np.flatnonzero(self.assignment == part)


def split_triples(graph: KnowledgeGraph, settings: SplitSettings) -> SplitResult:
    """Seeded, stratified by relation; entities and relations keep a train triple where possible.

    Facts that mirror each other (both directions of a symmetric fact, an inverse pair, a duplicate
    relation) travel together, so that the answer to a test question is not in train turned round.
    """
    mirrors = find_mirrors(graph)
    groups = np.arange(len(graph)) if settings.allow_inverse_leak else mirror_groups(graph, mirrors)
    order, starts = _grouped(groups, np.random.default_rng(settings.seed))
    counts = np.bincount(graph.triples[:, 1], minlength=graph.relation_count)
    assignment = _assign(
        graph.triples,
        order,
        starts,
        graph.degrees.copy(),
        _quotas(counts, settings.test),
        _quotas(counts, settings.valid),
        counts,
    )
    return SplitResult(assignment, tuple(mirrors))


def _grouped(groups: NDArray[np.int64], generator: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Triples ordered by randomly permuted group, and where every group begins."""
    group_count = int(groups.max()) + 1 if len(groups) else 0
    positions = generator.permutation(group_count)[groups]
    order = np.argsort(positions, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(positions, minlength=group_count))])
    return order, starts.astype(np.int64)


def _quotas(counts: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Whole numbers per relation that add up to the share of all triples (largest remainders)."""
    exact = counts * share
    quotas: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    missing = round(float(counts.sum() * share)) - int(quotas.sum())
    order = np.argsort(-(exact - quotas), kind="stable")[: max(missing, 0)]
    quotas[order] += 1
    return quotas


@kernel
def _assign(
    triples: NDArray[np.int32],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    test_quotas: NDArray[np.int64],
    valid_quotas: NDArray[np.int64],
    relation_left: NDArray[np.int64],
) -> NDArray[np.int8]:
    """Take group after group out of train while the quotas of its relations and the degrees of its entities allow."""
    assignment = np.zeros(len(triples), np.int8)
    for g in range(len(starts) - 1):
        members = order[starts[g] : starts[g + 1]]
        for e in members:  # tentatively out of train
            degrees[triples[e, 0]] -= 1
            degrees[triples[e, 2]] -= 1
            relation_left[triples[e, 1]] -= 1
            test_quotas[triples[e, 1]] -= 1
            valid_quotas[triples[e, 1]] -= 1
        safe, fits_test, fits_valid = True, True, True
        for e in members:
            safe &= degrees[triples[e, 0]] > 0 and degrees[triples[e, 2]] > 0 and relation_left[triples[e, 1]] > 0
            fits_test &= test_quotas[triples[e, 1]] >= 0
            fits_valid &= valid_quotas[triples[e, 1]] >= 0
        part = 0
        if safe and fits_test:
            part = 2
        elif safe and fits_valid:
            part = 1
        for e in members:
            assignment[e] = part
            if part == 0:
                degrees[triples[e, 0]] += 1
                degrees[triples[e, 2]] += 1
                relation_left[triples[e, 1]] += 1
            if part != 2:
                test_quotas[triples[e, 1]] += 1
            if part != 1:
                valid_quotas[triples[e, 1]] += 1
    return assignment
