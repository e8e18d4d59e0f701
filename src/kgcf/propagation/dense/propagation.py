"""The dense, obvious propagation: every entity's state for every query, in plain torch on any device.

The oracle of the sparse engine, of plans by paths (`semantics = grounded`) and of everybody (`semantics = nbfnet`).
Tensors inside are [N, B, …] and [2E, B, …], so that one segment of edges is one block of memory.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, hide_nothing
from kgcf.errors import SettingsError
from kgcf.propagation.dense.blockwise import Block, advance, cut_blocks
from kgcf.propagation.dense.layer import LayerStep, Visible, spread_vectors
from kgcf.propagation.layers.encoder import Encoder, Semantics
from kgcf.propagation.layers.segments import Segments, segment_sum


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
    blocks: list[Block]

    @classmethod
    def build(cls, graph: KnowledgeGraph, like: Tensor, block_size: int = 4096) -> "DenseEdges":
        """The graph's edges on the device and in the precision of a tensor, to be worked on in blocks."""
        device = like.device
        positions = torch.empty(graph.edge_count, dtype=torch.int64)
        positions[torch.from_numpy(graph.edge_triples.astype("int64"))] = torch.arange(graph.edge_count)
        sources = torch.from_numpy(graph.edge_tails.astype("int64")).to(device)
        relations = torch.from_numpy(graph.inverse(graph.edge_relations).astype("int64")).to(device)
        weights = None if graph.weights is None else torch.from_numpy(graph.edge_weights.copy()).to(like)
        offsets = torch.from_numpy(graph.offsets.copy()).to(device)
        blocks = cut_blocks(offsets, sources, relations, like.dtype, block_size)
        segments = Segments.build(offsets, like.dtype)
        return cls(graph, segments, sources, relations, weights, positions.to(device), blocks)


@dataclass(frozen=True, eq=False)
class DenseStates:
    """The last states of all entities, and whom each query reached; everybody in `nbfnet` semantics."""

    queries: Tensor  # [B, D] q_r
    states: Tensor  # [B, N, D]
    reached: Tensor  # [B, N] bool
    histograms: Tensor | None  # [B, N, 2R] k(v) of the visible edges, where the settings use it


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
    shape = (edges.graph.entity_count, *q.shape)  # N, B, D
    at_heads = heads, torch.arange(len(heads), device=heads.device)
    visible = _look(edges, heads, hidden or hide_nothing(len(heads)), q)
    histograms = _histograms(edges, visible, q) if encoder.settings.context != "none" else None
    reached = None
    if semantics == "grounded":
        reached = torch.zeros(shape[:2], dtype=torch.bool, device=q.device)
        reached[at_heads] = True
    boundary = q.new_zeros(shape).index_put(at_heads, q)
    setting = _Setting(encoder, edges, visible, q, boundary, histograms, edge_weights)
    states, reached = _run_layers(setting, reached)
    everybody = torch.ones(shape[:2], dtype=torch.bool, device=q.device) if reached is None else reached
    turned = None if histograms is None else histograms.transpose(0, 1)
    return DenseStates(q, states.transpose(0, 1), everybody.T, turned)


@dataclass(frozen=True, eq=False)
class _Setting:
    """What stays the same from layer to layer."""

    encoder: Encoder
    edges: DenseEdges
    visible: Visible
    q: Tensor  # [B, D]
    boundary: Tensor  # [N, B, D]
    histograms: Tensor | None  # [N, B or 1, 2R]
    edge_weights: Tensor | None  # [L, B, 2E]


def _run_layers(setting: _Setting, reached: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The last states and who is reached then [N, B]; None: everybody has a state (`nbfnet`)."""
    edges, visible, states = setting.edges, setting.visible, setting.boundary
    for depth, layer in enumerate(setting.encoder.steps()):
        extra = None if setting.edge_weights is None else setting.edge_weights[depth].T  # [2E, B]
        silent = None if reached is None or layer.settings.message != "transe" else ~reached
        coefficients = _weigh(edges, visible, silent, extra)
        step = LayerStep(layer, visible, setting.histograms)
        vectors = spread_vectors(layer, setting.q)
        states = advance(edges.blocks, step, states, setting.boundary, vectors, coefficients, step.parameters())
        if reached is not None:
            reached = _spread(edges, visible, reached)
            states = torch.where(reached.unsqueeze(2), states, 0)
    return states, reached


def _look(edges: DenseEdges, heads: Tensor, hidden: HiddenTriples, like: Tensor) -> Visible:
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
    at_heads = _group_by_block(edges, heads, hidden_edges, hidden_queries)
    return Visible(hidden_edges, hidden_queries, at_heads, degrees, scale, coefficients)


def _group_by_block(edges: DenseEdges, heads: Tensor, hidden_edges: Tensor, queries: Tensor) -> dict[int, Tensor]:
    """The hidden edges that enter their query's own head, by the first entity of their block."""
    at_head = edges.segments.targets[hidden_edges] == heads[queries]
    rows = torch.stack([hidden_edges, queries, heads[queries]], 1)[at_head]  # [·, 3]
    starts = torch.tensor([block.entities.start for block in edges.blocks], device=heads.device)
    owners = torch.searchsorted(starts, rows[:, 2].contiguous(), right=True) - 1
    return {int(starts[i]): rows[owners == i] for i in set(owners.tolist())}


def _spread(edges: DenseEdges, visible: Visible, reached: Tensor) -> Tensor:
    """[N, B] whom one more visible edge reaches."""
    arriving = reached[edges.sources]  # [2E, B]
    arriving[visible.hidden_edges, visible.hidden_queries] = False
    return reached | (segment_sum(arriving.float(), edges.segments) > 0)


def _weigh(edges: DenseEdges, visible: Visible, silent: Tensor | None, extra: Tensor | None) -> Tensor | None:
    """[2E, B] what every message is multiplied by: nothing of a silent sender [N, B]; None: all by one."""
    weights = visible.coefficients
    if extra is not None:
        weights = extra if weights is None else weights * extra
    if silent is None:
        return weights
    mute = silent[edges.sources]
    return (~mute).to(visible.scale) if weights is None else torch.where(mute, 0, weights)


def _histograms(edges: DenseEdges, visible: Visible, like: Tensor) -> Tensor:
    """[N, B or 1, 2R] k(v): every relation's share of the visible edges that leave v; zeros if there are none."""
    graph = edges.graph
    leaving = torch.from_numpy(graph.edge_relations.astype("int64")).to(like.device)
    cells = edges.segments.targets * (2 * graph.relation_count) + leaving  # an adjacency row is its entity's edges
    counts = torch.bincount(cells, minlength=graph.entity_count * 2 * graph.relation_count).to(like.dtype)
    counts = counts.view(graph.entity_count, 1, -1)  # [N·2R] → [N, 1, 2R]
    degrees = visible.degrees
    if len(visible.hidden_edges):
        counts = counts.repeat(1, degrees.shape[1], 1)
        rows, columns = edges.segments.targets[visible.hidden_edges], leaving[visible.hidden_edges]
        minus_one = like.new_full((len(rows),), -1.0)
        counts.index_put_((rows, visible.hidden_queries, columns), minus_one, accumulate=True)
    else:
        degrees = degrees[:, :1]
    return counts / degrees.clamp(min=1).unsqueeze(2)
