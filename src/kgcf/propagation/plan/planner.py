"""The plan of a batch: per layer, the slots (query, entity) that can influence a score and the edges between them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, hide_nothing
from kgcf.errors import DataError, SettingsError
from kgcf.propagation.plan.assembly import Findings, collect_edges, collect_slots, plan_queries
from kgcf.propagation.plan.cones import Adjacency, Questions
from kgcf.propagation.plan.everybody import plan_everybody
from kgcf.propagation.plan.fresh_arrays import new_buffers, new_findings, new_layer_slots, new_scratch
from kgcf.propagation.plan.plans import Budget, LayerPlan, Plan, Thinning

__all__ = ["MOST_LAYERS", "Budget", "LayerPlan", "Plan", "Planner", "Thinning"]

MOST_LAYERS = 120  # distances are kept in one byte


class Planner:
    """Plans batches on one graph; owns its scratch arrays, so use one planner per thread.

    With `everybody` (`semantics = nbfnet`) entities have states whether or not a walk reaches them.
    """

    def __init__(
        self, graph: KnowledgeGraph, layers: int, meeting: int | None = None, *, everybody: bool = False
    ) -> None:
        if not 1 <= layers <= MOST_LAYERS:
            raise SettingsError(f"layers = {layers} is impossible; choose 1 to {MOST_LAYERS}.")
        if meeting is not None and not 0 <= meeting <= layers:
            raise SettingsError(f"meeting = {meeting} is outside 0 … {layers}; leave it out to choose by cost.")
        self.graph = graph
        self.layers = layers
        self._everybody = everybody
        self._meeting = -1 if meeting is None else meeting
        self._adjacency = Adjacency(
            graph.offsets,
            graph.edge_relations,
            graph.edge_tails,
            graph.edge_triples,
            graph.triples,
            graph.relation_count,
            max(len(graph), 1),
        )
        self._log_degrees = float(np.log1p(graph.degrees).sum())
        self._scratch = new_scratch(graph, layers)
        self._most_degree = int(graph.degrees.max(initial=0))
        self._buffers = new_buffers()

    def plan(
        self,
        heads: ArrayLike,
        relations: ArrayLike,
        candidates: ArrayLike | None,
        hidden: HiddenTriples | None = None,
        thinning: Thinning | None = None,
    ) -> Plan:
        """One plan for the whole batch; candidates [B, K], or None to rank every entity."""
        return next(self.parts(heads, relations, candidates, hidden, thinning=thinning))

    def parts(
        self,
        heads: ArrayLike,
        relations: ArrayLike,
        candidates: ArrayLike | None,
        hidden: HiddenTriples | None = None,
        budget: Budget | None = None,
        thinning: Thinning | None = None,
    ) -> Iterator[Plan]:
        """Plans for consecutive parts of the batch, each as large as the budget allows and at least one query.

        `thinning`, in training, lets an update aggregate a draw of its edges. Where no entity has more edges than
        may be drawn, the plan is the exact one, bit for bit.
        """
        if thinning is not None and thinning.fan_in >= self._most_degree:
            thinning = None
        questions = _pose(heads, candidates, hidden, thinning)
        asked = np.ascontiguousarray(relations, dtype=np.int64)
        self._check(questions, asked)
        if self._everybody:
            yield from plan_everybody(self.graph, self.layers, questions, asked, budget or Budget())
            return
        findings = new_findings(len(asked), questions.candidates.shape[1], self.layers)
        limits = (budget or Budget()).limits
        first = 0
        while True:
            end, self._buffers = plan_queries(
                self._adjacency,
                questions,
                self._scratch,
                self._buffers,
                findings,
                limits,
                first,
                self._meeting,
            )
            yield self._assemble(questions, asked, findings, first, end)
            first = end
            if first >= len(asked):
                return

    def _check(self, questions: Questions, relations: NDArray[np.int64]) -> None:
        count = len(questions.heads)
        if questions.candidates.ndim != 2 or len(questions.candidates) != count:
            raise DataError(f"Candidates of shape {questions.candidates.shape}; give one row per query, [{count}, K].")
        if len(relations) != count or len(questions.hidden_offsets) != count + 1:
            raise DataError(
                f"A batch of {count} heads came with {len(relations)} relations and hidden triples for "
                f"{len(questions.hidden_offsets) - 1} queries; give one of each per query."
            )
        if len(questions.keys) != count:
            raise DataError(f"A batch of {count} queries came with {len(questions.keys)} keys; give one per query.")
        for name, ids, limit in (
            ("head", questions.heads, self.graph.entity_count),
            ("candidate", questions.candidates, self.graph.entity_count),
            ("relation", relations, 2 * self.graph.relation_count),
        ):
            if ids.size and (ids.min() < 0 or ids.max() >= limit):
                raise DataError(f"A {name} id of the batch lies outside 0 … {limit - 1}; check the vocabulary.")

    def _assemble(
        self, questions: Questions, relations: NDArray[np.int64], findings: Findings, first: int, end: int
    ) -> Plan:
        part = slice(first, end)
        means = (self._log_degrees + findings.log_degrees[part]) / max(self.graph.entity_count, 1)
        layers = self._layers(questions.heads[part], findings, part, means)
        hidden_offsets = questions.hidden_offsets[first : end + 1]
        hidden = HiddenTriples(
            hidden_offsets - hidden_offsets[0], questions.hidden_triples[hidden_offsets[0] : hidden_offsets[-1]]
        )
        rows = findings.rows[part]
        rows = np.where(rows >= 0, rows + layers[-1].slot_offsets[:-1, None], -1)
        return Plan(
            graph=self.graph,
            first=first,
            heads=questions.heads[part],
            relations=relations[part],
            hidden=hidden,
            layers=layers,
            mean_log_degrees=means,
            meetings=findings.meetings[part].copy(),
            candidates=None if questions.ranking else questions.candidates[part],
            rows=None if questions.ranking else rows,
        )

    def _layers(
        self, heads: NDArray[np.int64], findings: Findings, part: slice, means: NDArray[np.float64]
    ) -> tuple[LayerPlan, ...]:
        """Turn the buffers, written query by query, into layers over all queries."""
        slot_counts, edge_counts = findings.slot_counts[part], findings.edge_counts[part]
        slot_starts = np.ascontiguousarray(findings.slot_starts[part].T)
        edge_starts = np.ascontiguousarray(findings.edge_starts[part].T)
        before = np.zeros(len(heads) + 1, np.int64)
        layers = []
        for index in range(self.layers + 1):
            offsets, edge_offsets = _offsets(slot_counts[:, index]), _offsets(edge_counts[:, index])
            slots = new_layer_slots(int(offsets[-1]), len(heads))
            collect_slots(self._buffers.slots, slot_starts[index], offsets, before, heads, means, slots)
            sources, relations, entries = (np.empty(edge_offsets[-1], np.int32) for _ in range(3))
            collect_edges(self._buffers.edges, edge_starts[index], edge_offsets, before, sources, relations, entries)
            layers.append(
                LayerPlan(
                    slot_offsets=offsets, sources=sources, relations=relations, entries=entries, **slots._asdict()
                )
            )
            before = offsets
        return tuple(layers)


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _pose(
    heads: ArrayLike, candidates: ArrayLike | None, hidden: HiddenTriples | None, thinning: Thinning | None
) -> Questions:
    """The batch as the kernels want it: contiguous; candidates are [B, 0] when ranking."""
    sources = np.ascontiguousarray(heads, dtype=np.int64)
    hidden = hide_nothing(len(sources)) if hidden is None else hidden
    table = np.zeros((len(sources), 0)) if candidates is None else candidates
    return Questions(
        sources,
        np.ascontiguousarray(table, dtype=np.int64),
        np.ascontiguousarray(hidden.offsets, dtype=np.int64),
        np.ascontiguousarray(hidden.triples, dtype=np.int32),
        candidates is None,
        0 if thinning is None else thinning.fan_in,
        np.zeros(len(sources), np.uint64) if thinning is None else np.ascontiguousarray(thinning.keys, dtype=np.uint64),
    )
