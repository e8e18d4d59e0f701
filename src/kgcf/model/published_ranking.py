"""Sparse ranking in `nbfnet` semantics: the states that no head influences once, then the forward cone of a head.

In the published semantics every entity has a state. Beyond l hops of the head it depends on the entity's own
surroundings and on the query relation, not on the head (docs/engine.md): the *background*. It is computed densely,
once if relation vectors are free and once per relation if they depend on the query. A query then updates its
forward cone only, whose members hear the background from everybody outside.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import SettingsError
from kgcf.machine import memory_bound as bound
from kgcf.machine.compiled import kernel
from kgcf.model.decoder import Decoder
from kgcf.propagation.dense.propagation import DenseEdges, propagate_background
from kgcf.propagation.layers.aggregation import aggregate, wire
from kgcf.propagation.layers.encoder import Encoder, EncoderLayer
from kgcf.propagation.layers.fused import advance, can_fuse
from kgcf.propagation.layers.sparse import budget_for, runs_compiled
from kgcf.propagation.layers.torch_operations import aggregate_with_torch
from kgcf.propagation.plan.planner import LayerPlan, Plan, Planner


class BackgroundRanker:
    """Scores all entities as the dense `nbfnet` semantics does, for one model on one graph; not for two threads."""

    def __init__(
        self, encoder: Encoder, decoder: Decoder, graph: KnowledgeGraph, memory: float = bound.DEFAULT
    ) -> None:
        if encoder.settings.context != "none" or decoder.treatment:
            raise SettingsError(
                "Sparse ranking in nbfnet semantics is for published models, which have no context and no treatment."
            )
        self._encoder = encoder
        self._decoder = decoder
        self._graph = graph
        self._edges = DenseEdges.build(graph, encoder.query.weight)
        self._planner = Planner(graph, encoder.settings.layers)
        self._budget = budget_for(encoder, memory)
        self._place = np.full(graph.entity_count, -1, np.int32)
        self._states: list[Tensor] = []  # L + 1 backgrounds [N, D]
        self._relation = -1  # whose backgrounds these are, where that matters
        self._logits: dict[int, Tensor] = {}  # [N] by relation

    def score_tails(self, heads: ArrayLike, relations: ArrayLike, together: int = 4) -> Tensor:
        """[B, N] logits of all entities; queries of one relation are ranked side by side, a few at a time."""
        sources, asked = np.asarray(heads, np.int64), np.asarray(relations, np.int64)
        scores = self._encoder.query.weight.new_empty(len(sources), self._graph.entity_count)
        with torch.no_grad():
            for relation in np.unique(asked):
                self._prepare(int(relation))
                rows = np.flatnonzero(asked == relation)
                for begin in range(0, len(rows), together):
                    part = rows[begin : begin + together]
                    for plan in self._planner.parts(sources[part], asked[part], None, None, self._budget):
                        self._score(plan, int(relation), scores, part[plan.first : plan.first + len(plan)])
        return scores

    def _prepare(self, relation: int) -> None:
        """Have the background of a relation at hand."""
        known = bool(self._states) and (not self._encoder.settings.dependent or self._relation == relation)
        if not known:
            one = torch.tensor([relation], device=self._encoder.query.weight.device)
            self._states = [states[:, 0] for states in propagate_background(self._encoder, self._edges, one)]
            self._relation = relation
        if relation not in self._logits:
            q = self._encoder.query.weight[relation]  # [D]
            self._logits[relation] = self._decoder.evidence(self._states[-1], q)

    def _score(self, plan: Plan, relation: int, scores: Tensor, rows: NDArray[np.int64]) -> None:
        q = self._encoder.queries(torch.from_numpy(plan.relations).to(scores.device))  # [B, D]
        x = q[torch.from_numpy(plan.layers[0].queries).to(q.device)]  # [S_0, D]: the heads
        for layer, step, background in zip(self._encoder.steps(), self._complete(plan), self._states, strict=False):
            x = _advance(layer, step, torch.cat([x, background]), q, self._weights(step, q))
        last = plan.layers[-1]
        scores[torch.from_numpy(rows).to(q.device)] = self._logits[relation]
        places = (torch.from_numpy(ids).to(q.device) for ids in (rows[last.queries], last.entities.astype(np.int64)))
        scores[tuple(places)] = self._decoder.evidence(x, q[torch.from_numpy(last.queries).to(q.device)])

    def _complete(self, plan: Plan) -> Iterator[LayerPlan]:
        """The plan's layers 1 … L with the edges from everybody: row P + u of the layer before is u's background."""
        graph = self._graph
        for before, layer in zip(plan.layers[:-1], plan.layers[1:], strict=True):
            edge_offsets = np.concatenate([[0], np.cumsum(layer.degrees, dtype=np.int64)])
            sources, relations, entries = (np.empty(edge_offsets[-1], np.int32) for _ in range(3))
            _list_all_edges(
                (graph.offsets, graph.edge_relations, graph.edge_tails),
                graph.relation_count,
                (before.slot_offsets, before.entities),
                (layer.slot_offsets, layer.entities),
                self._place,
                (sources, relations, entries),
            )
            rest = len(before.entities) + layer.entities
            yield replace(
                layer,
                previous=np.where(layer.previous >= 0, layer.previous, rest).astype(np.int32),
                edge_offsets=edge_offsets,
                sources=sources,
                relations=relations,
                entries=entries,
            )

    def _weights(self, step: LayerPlan, like: Tensor) -> Tensor | None:
        """[M] the graph's own weights of a layer's edges."""
        if self._graph.weights is None:
            return None
        return torch.from_numpy(self._graph.edge_weights[step.entries]).to(like)


def _advance(layer: EncoderLayer, step: LayerPlan, x: Tensor, q: Tensor, weights: Tensor | None) -> Tensor:
    """[S, D] the states after one layer, from those before and the background, x [P + N, D]."""
    vectors = layer.relation_vectors(q)
    stride = vectors.shape[1] if vectors.dim() == 3 else 0
    vectors = vectors.reshape(-1, x.shape[1])  # [B, 2R, D] → [B·2R, D]
    compiled = runs_compiled(x.device)
    if compiled and can_fuse(layer.settings, x):
        return advance(layer, step, x, vectors, stride, q, weights, None)
    if compiled:
        statistics = aggregate(layer.settings, wire(step, stride), x, vectors, q, weights)
    else:
        statistics = aggregate_with_torch(layer.settings, step, stride, x, vectors, q, weights)
    own = x[torch.from_numpy(step.previous).to(x.device)]
    return layer.update(own, statistics, torch.from_numpy(step.scales).to(x))


@kernel
def _list_all_edges(
    table: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]],  # the graph's offsets, relations, tails
    relation_count: int,
    before: tuple[NDArray[np.int64], NDArray[np.int32]],  # slot offsets and entities of the layer before
    layer: tuple[NDArray[np.int64], NDArray[np.int32]],  # and of the layer
    place: NDArray[np.int32],  # [N] −1 everywhere, before and after
    edges: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]],  # sources, relations, entries, filled
) -> None:
    """Every edge that enters a slot, from the sender's slot or, where it has none, from its background."""
    offsets, relations, tails = table
    count = 0
    for b in range(len(layer[0]) - 1):
        for slot in range(before[0][b], before[0][b + 1]):
            place[before[1][slot]] = slot
        for slot in range(layer[0][b], layer[0][b + 1]):
            for entry in range(offsets[layer[1][slot]], offsets[layer[1][slot] + 1]):
                source = place[tails[entry]]
                relation = relations[entry]
                edges[0][count] = source if source >= 0 else len(before[1]) + tails[entry]
                edges[1][count] = relation + (relation_count if relation < relation_count else -relation_count)
                edges[2][count] = entry
                count += 1
        for slot in range(before[0][b], before[0][b + 1]):
            place[before[1][slot]] = -1
