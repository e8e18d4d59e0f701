"""The dense, obvious propagation: every entity's state for every query, in plain torch on any device.

The oracle of the sparse engine (`semantics = grounded`) and the published behaviour (`semantics = nbfnet`).
Tensors inside are [N, B, …] and [2E, B, …], so that one segment of edges is one block of memory.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hidden import HiddenTriples, hide_nothing
from kgcf.decoder import Decoder
from kgcf.encoder import SMALLEST_VARIANCE, Encoder, EncoderLayer, Message
from kgcf.errors import SettingsError
from kgcf.propagation.segments import Segments, segment_extreme, segment_sum

Semantics = Literal["grounded", "nbfnet"]


@dataclass(frozen=True, eq=False)
class DenseEdges:
    """The edges of a graph as tensors, sorted by the entity they enter.

    Edge p enters the entity in whose adjacency row position p lies; it comes from `edge_tails[p]` and its
    relation is the inverse of `edge_relations[p]`.
    """

    graph: KnowledgeGraph
    segments: Segments  # which edges enter which entity
    sources: Tensor  # [2E]
    relations: Tensor  # [2E]
    weights: Tensor | None  # [2E] or None: all ones
    positions: Tensor  # [2E] where triple e (at e) and its inverse (at e + E) lie

    @classmethod
    def build(cls, graph: KnowledgeGraph, like: Tensor) -> "DenseEdges":
        """The graph's edges on the device and in the precision of a tensor."""
        positions = torch.empty(graph.edge_count, dtype=torch.int64)
        positions[torch.from_numpy(graph.edge_triples.astype("int64"))] = torch.arange(graph.edge_count)
        sources = torch.from_numpy(graph.edge_tails.astype("int64"))
        relations = torch.from_numpy(graph.inverse(graph.edge_relations).astype("int64"))
        weights = None if graph.weights is None else torch.from_numpy(graph.edge_weights.copy()).to(like)
        segments = Segments.build(torch.from_numpy(graph.offsets.copy()).to(like.device), like.dtype)
        device = like.device
        return cls(graph, segments, sources.to(device), relations.to(device), weights, positions.to(device))


@dataclass(frozen=True, eq=False)
class DenseStates:
    """The last states of all entities, and whom each query reached; everybody in `nbfnet` semantics."""

    queries: Tensor  # [B, D] q_r
    states: Tensor  # [B, N, D]
    reached: Tensor  # [B, N] bool
    histograms: Tensor | None  # [B, N, 2R] k(v) of the visible edges, where the settings use it


@dataclass(frozen=True, eq=False)
class _Visible:
    """What a batch of queries sees of the graph, the hidden sets taken out."""

    heads: Tensor  # [B]
    hidden_edges: Tensor  # [H] edges
    hidden_queries: Tensor  # [H] the query that must not see them
    degrees: Tensor  # [N, B] visible edges that enter
    scale: Tensor  # [N, B] log-degree over its mean
    coefficients: Tensor | None  # [2E, B] weight of every message, 0 where it is hidden; None: all ones


def propagate_densely(
    encoder: Encoder,
    edges: DenseEdges,
    heads: Tensor,
    relations: Tensor,
    hidden: HiddenTriples | None = None,
    semantics: Semantics = "grounded",
    edge_weights: Tensor | None = None,
) -> DenseStates:
    """The states of all N entities after L layers, for B queries (head, relation).

    `edge_weights` [L, B, 2E] multiply the messages of every layer on top of the graph's own weights; they are
    there to be differentiated. Grounded: an entity that no walk of at most l visible edges reaches has state 0
    after layer l and sends the zero vector, whatever biases and TransE would make of it.
    """
    if semantics == "nbfnet" and encoder.settings.context == "unreached":
        raise SettingsError("In nbfnet semantics every entity has a state; choose a context other than 'unreached'.")
    q = encoder.queries(relations)  # [B, D]
    count = edges.graph.entity_count
    visible = _look(edges, heads, hidden or hide_nothing(len(heads)), q)
    histograms = _histograms(edges, visible, q) if encoder.settings.context != "none" else None
    reached = torch.zeros(count, len(heads), dtype=torch.bool, device=q.device)  # [N, B]
    reached[heads, torch.arange(len(heads))] = True
    boundary = q.new_zeros(count, *q.shape).index_put((heads, torch.arange(len(heads))), q)  # [N, B, D]
    states = boundary
    for depth, layer in enumerate(encoder.steps()):
        extra = None if edge_weights is None else edge_weights[depth].T  # [2E, B]
        silent = ~reached if semantics == "grounded" else None
        messages = _send(layer, edges, visible, states, q, silent, extra)
        statistics = _aggregate(layer, edges, visible, messages, boundary)
        states = _update(layer, visible, states, statistics, histograms)
        if semantics == "grounded":
            reached = _spread(edges, visible, reached)
            states = torch.where(reached.unsqueeze(2), states, 0)
    if semantics == "nbfnet":
        reached = torch.ones_like(reached)
    turned = None if histograms is None else histograms.transpose(0, 1)
    return DenseStates(q, states.transpose(0, 1), reached.T, turned)


def score_densely(decoder: Decoder, result: DenseStates, treated: Tensor | None = None) -> Tensor:
    """[B, N] logits of all entities; with `rank_reached_first` they become ranking scores."""
    shape = result.reached.shape  # B, N
    q = result.queries.unsqueeze(1).expand(*shape, -1)  # [B, D] → [B, N, D]
    if decoder.variant not in ("decoder", "unreached"):
        return decoder(result.states, q, treated)  # type: ignore[no-any-return]
    assert result.histograms is not None
    context = decoder.project_context(result.histograms).expand(*shape, -1)
    reached = result.reached if decoder.variant == "unreached" else None
    return decoder(result.states, q, treated, context, reached)  # type: ignore[no-any-return]


def make_messages(kind: Message, states: Tensor, vectors: Tensor) -> Tensor:
    """[…, D] what states […, D] become when they travel along relations […, D]."""
    if kind == "distmult":
        return states * vectors
    if kind == "transe":
        return states + vectors
    real, imaginary = states.chunk(2, -1)  # […, D] → 2 × […, D/2]
    cosine, sine = vectors.chunk(2, -1)
    return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)


def _look(edges: DenseEdges, heads: Tensor, hidden: HiddenTriples, like: Tensor) -> _Visible:
    """Take the hidden sets out of edges, degrees and the mean log-degree."""
    queries = torch.arange(len(hidden)).repeat_interleave(torch.from_numpy(hidden.offsets).diff())
    triples = torch.from_numpy(hidden.triples.astype("int64"))
    both = torch.cat([triples, triples + len(edges.graph)]).to(like.device)  # a triple and its inverse
    hidden_queries, hidden_edges = queries.repeat(2).to(like.device), edges.positions[both]
    degrees = edges.segments.lengths.to(like).unsqueeze(1).repeat(1, len(heads))  # [N, B]
    minus_one = like.new_full((len(hidden_edges),), -1.0)
    degrees.index_put_((edges.segments.targets[hidden_edges], hidden_queries), minus_one, accumulate=True)
    logarithms = torch.log1p(degrees)
    mean = logarithms.mean(0, keepdim=True)  # [1, B]
    scale = torch.where(mean > 0, logarithms / mean, torch.zeros_like(logarithms))
    coefficients = None
    if len(hidden_edges) or edges.weights is not None:
        weights = edges.weights if edges.weights is not None else like.new_ones(edges.graph.edge_count)
        coefficients = weights.unsqueeze(1).repeat(1, len(heads))  # [2E, B]
        coefficients[hidden_edges, hidden_queries] = 0
    return _Visible(heads, hidden_edges, hidden_queries, degrees, scale, coefficients)


def _spread(edges: DenseEdges, visible: _Visible, reached: Tensor) -> Tensor:
    """[N, B] whom one more visible edge reaches."""
    arriving = reached[edges.sources]  # [2E, B]
    arriving[visible.hidden_edges, visible.hidden_queries] = False
    return reached | (segment_sum(arriving.float(), edges.segments) > 0)


def _aggregate(layer: EncoderLayer, edges: DenseEdges, visible: _Visible, messages: Tensor, boundary: Tensor) -> Tensor:
    """[N, B, A, D] the statistics of the messages [2E, B, D]; the boundary [N, B, D] counts as one more message."""
    how, parts = layer.settings.aggregate, []
    count = visible.degrees.unsqueeze(2) + 1  # [N, B, 1]
    if how in ("sum", "mean", "pna"):
        total = segment_sum(messages, edges.segments) + boundary
        parts.append(total if how == "sum" else total / count)
    if how in ("max", "min", "pna"):
        compared = _hide_at_heads(edges, visible, messages, boundary)
        for largest in [True, False] if how == "pna" else [how == "max"]:
            parts.append(segment_extreme(compared, boundary, edges.segments, largest))
    if how == "pna":
        square = (segment_sum(messages.square(), edges.segments) + boundary.square()) / count
        parts.append((square - parts[0].square()).clamp(min=SMALLEST_VARIANCE).sqrt())
    return torch.stack(parts, dim=2)


def _send(
    layer: EncoderLayer,
    edges: DenseEdges,
    visible: _Visible,
    states: Tensor,
    q: Tensor,
    silent: Tensor | None,
    extra: Tensor | None,
) -> Tensor:
    """[2E, B, D] every edge's weighted message; zero where the edge is hidden or the sender is silent [N, B]."""
    kind, coefficients = layer.settings.message, visible.coefficients
    vectors = layer.relation_vectors(q)
    vectors = vectors.transpose(0, 1) if vectors.dim() == 3 else vectors.unsqueeze(1)  # [2R, B or 1, D]
    messages = make_messages(kind, states[edges.sources], vectors[edges.relations])
    if silent is not None and kind == "transe":  # the other messages of a zero state are zero by themselves
        messages = torch.where(silent[edges.sources].unsqueeze(2), 0, messages)
    if extra is not None:
        coefficients = extra if coefficients is None else coefficients * extra
    return messages if coefficients is None else messages * coefficients.unsqueeze(2)


def _hide_at_heads(edges: DenseEdges, visible: _Visible, messages: Tensor, boundary: Tensor) -> Tensor:
    """[2E, B, D] messages among which a hidden one can be neither the largest nor the smallest.

    A hidden message is a zero. Where the boundary is zero this is one of the values anyway; at the heads, where
    it is not, the hidden messages become the boundary itself.
    """
    at_head = edges.segments.targets[visible.hidden_edges] == visible.heads[visible.hidden_queries]
    place = (visible.hidden_edges[at_head], visible.hidden_queries[at_head])
    if not len(place[0]):
        return messages
    return messages.index_put(place, boundary[visible.heads[place[1]], place[1]].detach())


def _update(
    layer: EncoderLayer, visible: _Visible, states: Tensor, statistics: Tensor, histograms: Tensor | None
) -> Tensor:
    """[N, B, D] the layer's update of every entity and query."""
    shape = states.shape
    context = None
    if layer.context_linear is not None and histograms is not None:
        context = layer.project_context(histograms).expand(shape).flatten(0, 1)  # [N, B, D] → [N·B, D]
    updated = layer.update(states.flatten(0, 1), statistics.flatten(0, 1), visible.scale.flatten(), context)
    return updated.view(shape)


def _histograms(edges: DenseEdges, visible: _Visible, like: Tensor) -> Tensor:
    """[N, B or 1, 2R] k(v): every relation's share of the visible edges that leave v; zeros if there are none."""
    graph = edges.graph
    leaving = torch.from_numpy(graph.edge_relations.astype("int64")).to(like.device)
    cells = edges.segments.targets * (2 * graph.relation_count) + leaving  # an adjacency row is its entity's edges
    counts = torch.bincount(cells, minlength=graph.entity_count * 2 * graph.relation_count).to(like.dtype)
    counts = counts.view(graph.entity_count, 1, -1)  # [N·2R] → [N, 1, 2R]
    degrees = visible.degrees
    if len(visible.hidden_edges):
        counts = counts.repeat(1, len(visible.heads), 1)
        rows, columns = edges.segments.targets[visible.hidden_edges], leaving[visible.hidden_edges]
        minus_one = like.new_full((len(rows),), -1.0)
        counts.index_put_((rows, visible.hidden_queries, columns), minus_one, accumulate=True)
    else:
        degrees = degrees[:, :1]
    return counts / degrees.clamp(min=1).unsqueeze(2)
