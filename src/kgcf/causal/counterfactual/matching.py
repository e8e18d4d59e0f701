"""match_pairs: for any triple the nearest pair with the opposite treatment (paper sec. 4.3, eq. 4–7)."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgcf.causal.counterfactual.candidates import Candidates, LeftOut, ObservedPairs, groups
from kgcf.causal.counterfactual.nearest import Found, Ints, Search, search_among, search_by_label
from kgcf.causal.counterfactual.table import CounterfactualTable
from kgcf.causal.embedding import EntitySpace
from kgcf.causal.treatment import Treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, Remove
from kgcf.errors import DataError, SettingsError
from kgcf.progress import Advance, silent

SLICE = 2048  # queries per task


def match_pairs(
    triples: ArrayLike,
    graph: KnowledgeGraph,
    space: EntitySpace,
    treatment: Treatment,
    candidates: Candidates = "observed",
    leave_one_out: bool | None = None,
    threads: int | None = None,
    advance: Advance = silent,
    pool: "Pool | None" = None,
    *,
    remove: Remove = "triple",
    hidden: HiddenTriples | None = None,
) -> CounterfactualTable:
    """The substitute (a, b) of every triple (h, r, t), known or not: T(a,r,b) = 1 − T(h,r,t), minimal distance.

    a ≠ h, b ≠ t, a ≠ b, both with a train edge; equal distances go to the lowest (a, b). With leave_one_out (default:
    as the treatment's settings say) treatments are taken on the graph without what training hides (`remove`): for
    the train triples among those asked about, and for observed candidates. Inverse relations swap the ends.
    `hidden` says what each triple asked about must not see, instead. Whoever asks often on one graph gives a `pool` of
    the same graph, treatment and choices.
    """
    own = treatment.settings.leave_one_out if leave_one_out is None else leave_one_out
    pool = pool or Pool.of(graph, treatment, candidates, own, remove)
    assert pool.serves(graph, treatment, candidates, own, remove)
    asked = _checked(triples, graph, space)
    forward = forward_triples(asked, graph.relation_count)
    every = triples is graph.triples and hidden is None
    treated = pool.treated if every else _factual_treatments(treatment, forward, own, remove, hidden)
    outcomes = graph.contains(forward)
    a, b, distances = run_searches(
        pool.searches(space, forward, treated), forward[:, 0], forward[:, 2], threads, advance
    )
    found, found_outcomes = a >= 0, outcomes.copy()
    found_outcomes[found] = graph.contains(np.stack([a, forward[:, 1], b], axis=1)[found])
    swapped = asked[:, 1] >= graph.relation_count
    substitutes = np.stack([np.where(swapped, b, a), np.where(swapped, a, b)], axis=1).astype(np.int32)
    return CounterfactualTable(
        asked, substitutes, distances, treated, treated ^ found, outcomes, found_outcomes, candidates, own, remove
    )


def _factual_treatments(
    treatment: Treatment, forward: NDArray[np.int64], own: bool, remove: Remove, hidden: HiddenTriples | None
) -> NDArray[np.bool_]:
    """[Q] T^F, without what is said to be hidden, or by the rule."""
    if hidden is None:
        return treatment.treated_triples(forward, leave_one_out=own, remove=remove)
    return treatment.treated(forward[:, 0], forward[:, 1], forward[:, 2:], hidden)[:, 0]


def forward_triples(triples: NDArray[np.int32], relation_count: int) -> NDArray[np.int64]:
    """(h, r + R, t) as (t, r, h); others as they are."""
    forward = triples.astype(np.int64)
    inverse = forward[:, 1] >= relation_count
    forward[inverse] = forward[inverse][:, ::-1]
    forward[inverse, 1] -= relation_count
    return forward


@dataclass(frozen=True, eq=False)
class Pool:
    """The pairs of a graph that may stand in for a triple, whatever triple is asked about."""

    graph: KnowledgeGraph
    treatment: Treatment
    candidates: Candidates
    leave_one_out: bool
    remove: Remove
    pairs: ObservedPairs | None = field(repr=False)  # None: all pairs
    left_out: LeftOut | None = field(repr=False)  # None: treatments on the full graph

    @classmethod
    def of(
        cls, graph: KnowledgeGraph, treatment: Treatment, candidates: Candidates, leave_one_out: bool, remove: Remove
    ) -> "Pool":
        """Collect them."""
        if candidates not in ("all", "observed"):
            raise SettingsError(f"There is no candidate set called '{candidates}'. Choices: all, observed.")
        pairs = ObservedPairs.of(graph) if candidates == "observed" else None
        needed = leave_one_out and pairs is not None
        left_out = LeftOut.of(graph, treatment, remove) if needed else None
        return cls(graph, treatment, candidates, leave_one_out, remove, pairs, left_out)

    @property
    def treated(self) -> NDArray[np.bool_]:
        """[E] T^F of the graph's own triples."""
        if self.left_out is not None:
            return self.left_out.treated
        triples, own = self.graph.triples, self.leave_one_out
        return self.treatment.treated_triples(triples, leave_one_out=own, remove=self.remove)

    def serves(
        self, graph: KnowledgeGraph, treatment: Treatment, candidates: Candidates, leave_one_out: bool, remove: Remove
    ) -> bool:
        """Whether it was made of these very objects."""
        same = self.graph is graph and self.treatment is treatment
        return same and (self.candidates, self.leave_one_out, self.remove) == (candidates, leave_one_out, remove)

    def searches(
        self, space: EntitySpace, forward: NDArray[np.int64], treated: NDArray[np.bool_]
    ) -> Iterator[tuple[Search, NDArray[np.intp]]]:
        """Relation by relation, the searches that the queries at hand need."""
        active = np.flatnonzero(self.graph.degrees)
        pairs, vectors = self.pairs, space.vectors
        for relation, rows in groups(forward[:, 1], self.graph.relation_count):
            labels = self.treatment.labels.dense(relation)
            for wanted in (False, True):
                part = rows[treated[rows] != wanted]
                if not len(part):
                    continue
                if pairs is None:
                    yield search_by_label(vectors, active, labels, wanted), part
                else:
                    allowed = pairs.treated(relation, labels, self.left_out) == wanted
                    yield search_among(vectors, pairs.heads[allowed], pairs.tails[allowed]), part


def run_searches(
    tasks: Iterator[tuple[Search, NDArray[np.intp]]],
    heads: Ints,
    tails: Ints,
    threads: int | None = None,
    advance: Advance = silent,
) -> Found:
    """Run every search on its rows, several slices at a time; rows are independent, so threads change nothing."""
    a, b = np.full(len(heads), -1, np.int64), np.full(len(heads), -1, np.int64)
    distances = np.full(len(heads), np.inf)
    workers = threads or os.cpu_count() or 1
    waiting: list[tuple[Future[Found], NDArray[np.intp]]] = []

    def collect(limit: int) -> None:
        while len(waiting) > limit:
            future, rows = waiting.pop(0)
            a[rows], b[rows], distances[rows] = future.result()
            advance(len(rows))

    with ThreadPoolExecutor(workers) as pool:
        for search, rows in tasks:
            rows = rows[np.lexsort((heads[rows], tails[rows]))]  # slices share entities
            for begin in range(0, len(rows), SLICE):
                part = rows[begin : begin + SLICE]
                waiting.append((pool.submit(search, heads[part], tails[part]), part))
                collect(2 * workers)
        collect(0)
    return a, b, distances


def _checked(triples: ArrayLike, graph: KnowledgeGraph, space: EntitySpace) -> NDArray[np.int32]:
    array = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
    limits = np.array([graph.entity_count, 2 * graph.relation_count, graph.entity_count])
    outside = ((array < 0) | (array >= limits)).any(axis=1)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DataError(
            f"Triple {tuple(map(int, array[row]))} at position {row} is outside the graph of "
            f"{graph.entity_count:,} entities and {graph.relation_count:,} relations (and as many inverse ones)."
        )
    if len(space.vectors) != graph.entity_count:
        raise DataError(
            f"The entity space has {len(space.vectors):,} vectors but the graph {graph.entity_count:,} entities; "
            "embed this graph's entities."
        )
    return array
