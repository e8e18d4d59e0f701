"""Propagation by plain loops, one edge, one entity, one channel at a time: the oracle of the dense reference."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.model.decoder import Decoder
from kgcf.propagation.layers.encoder import Encoder, EncoderLayer


@dataclass(frozen=True)
class Edge:
    source: int
    relation: int
    target: int
    weight: float | Tensor


@dataclass(frozen=True)
class LoopStates:
    states: list[Tensor]  # N × [D]
    reached: list[bool]
    histograms: list[Tensor]  # N × [2R]


def visible_edges(graph: KnowledgeGraph, hidden: list[int], extra: Tensor | None) -> list[Edge]:
    """Both directions of every triple that is not hidden; extra [2E] weights by adjacency position at the target."""
    edges = []
    for index, (head, relation, tail) in enumerate(graph.triples.tolist()):
        if index in hidden:
            continue
        weight = 1.0 if graph.weights is None else float(graph.weights[index])
        backward = relation + graph.relation_count
        for source, label, target in ((head, relation, tail), (tail, backward, head)):
            position = int(graph.find_edges([target], graph.inverse(np.array([label])), [source])[0])
            edges.append(Edge(source, label, target, weight if extra is None else weight * extra[position]))
    return edges


def message_of(kind: str, state: Tensor, vector: Tensor) -> Tensor:
    values = []
    half = len(state) // 2
    for d in range(len(state)):
        if kind == "distmult":
            values.append(state[d] * vector[d])
        elif kind == "transe":
            values.append(state[d] + vector[d])
        elif d < half:
            values.append(state[d] * vector[d] - state[d + half] * vector[d + half])
        else:
            values.append(state[d - half] * vector[d] + state[d] * vector[d - half])
    return torch.stack(values)


def extreme(values: list[Tensor], boundary: Tensor, largest: bool) -> Tensor:
    """One channel: the boundary owns a tie with it; all other values that tie get the full gradient each."""
    best = max if largest else min
    target = best([float(v.detach()) for v in values] + [float(boundary.detach())])
    if float(boundary.detach()) == target:
        return boundary
    winners = [v for v in values if float(v.detach()) == target]
    result = winners[0]
    for winner in winners[1:]:
        result = result + winner - winner.detach()
    return result


def statistics_of(how: str, messages: list[Tensor], boundary: Tensor) -> Tensor:
    """[A, D] of the messages of all visible in-edges, zero vectors included, and the boundary."""
    columns = []
    for d in range(len(boundary)):
        values = [m[d] for m in messages]
        total, square = boundary[d], boundary[d] ** 2
        for value in values:
            total, square = total + value, square + value**2
        mean = total / (len(values) + 1)
        variance = square / (len(values) + 1) - mean**2
        std = torch.sqrt(variance) if float(variance.detach()) >= 1e-6 else torch.full_like(variance, 1e-3)
        high, low = extreme(values, boundary[d], True), extreme(values, boundary[d], False)
        chosen = {"sum": [total], "mean": [mean], "max": [high], "min": [low], "pna": [mean, high, low, std]}
        columns.append(torch.stack(chosen[how]))
    return torch.stack(columns, dim=1)


def update_of(layer: EncoderLayer, own: Tensor, statistics: Tensor, scale: float, histogram: Tensor) -> Tensor:
    """x + ReLU(norm(W [x; f; s·f; f/max(s, .01)] + b + W_k k)) for one state."""
    f = torch.cat(list(statistics))
    parts = [own, f] if layer.settings.aggregate != "pna" else [own, f, scale * f, f / max(scale, 0.01)]
    row = layer.linear.weight @ torch.cat(parts) + layer.linear.bias
    if layer.context_linear is not None:
        row = row + layer.context_linear.weight @ histogram
    if layer.layer_norm is not None:
        centred = row - row.mean()
        row = centred / torch.sqrt((centred**2).mean() + layer.layer_norm.eps)
        row = row * layer.layer_norm.weight + layer.layer_norm.bias
    row = torch.relu(row)
    return row + own if layer.settings.residual else row


def propagate_by_loops(
    encoder: Encoder,
    graph: KnowledgeGraph,
    head: int,
    relation: int,
    hidden: list[int],
    grounded: bool = True,
    edge_weights: Tensor | None = None,
) -> LoopStates:
    """All states of one query after L layers; edge_weights [L, 2E]."""
    count, settings = graph.entity_count, encoder.settings
    q = encoder.query.weight[relation]
    zero = torch.zeros_like(q)
    plain = visible_edges(graph, hidden, None)
    degrees = [sum(edge.target == v for edge in plain) for v in range(count)]
    logarithms = [float(np.log(degree + 1)) for degree in degrees]
    mean = sum(logarithms) / count
    histograms = []
    for v in range(count):
        histogram = q.new_zeros(2 * graph.relation_count)
        for edge in plain:
            if edge.source == v:
                histogram[edge.relation] += 1 / degrees[v]
        histograms.append(histogram)
    states = [q if v == head else zero for v in range(count)]
    reached = {head}
    for depth, layer in enumerate(encoder.steps()):
        edges = visible_edges(graph, hidden, None if edge_weights is None else edge_weights[depth])
        vectors = layer.relation_vectors(q.unsqueeze(0))
        vectors = vectors[0] if settings.dependent else vectors
        following = reached | {edge.target for edge in edges if edge.source in reached}
        updated = []
        for v in range(count):
            messages = []
            for edge in edges:
                if edge.target == v:
                    speaks = edge.source in reached or not grounded
                    sent = message_of(settings.message, states[edge.source], vectors[edge.relation]) * edge.weight
                    messages.append(sent if speaks else zero)
            statistics = statistics_of(settings.aggregate, messages, q if v == head else zero)
            scale = logarithms[v] / mean if mean > 0 else 0.0
            updated.append(update_of(layer, states[v], statistics, scale, histograms[v]))
        if grounded:
            updated = [state if v in following else zero for v, state in enumerate(updated)]
        states, reached = updated, following
    return LoopStates(states, [v in reached or not grounded for v in range(count)], histograms)


def score_by_loops(decoder: Decoder, result: LoopStates, q: Tensor, treated: list[bool] | None) -> Tensor:
    """[N] logits, the decoder's inputs concatenated in the order state, query, treatment, context."""
    logits = []
    for v, state in enumerate(result.states):
        head, parts = decoder.reached, [state, q]
        if decoder.variant == "unreached" and not result.reached[v]:
            assert decoder.unreached is not None
            head, parts = decoder.unreached, [q]
        if treated is not None:
            parts.append(q.new_tensor([float(treated[v])]))
        if decoder.variant == "decoder" or head is decoder.unreached:
            parts.append(result.histograms[v])
        hidden = torch.relu(head.hidden.weight @ torch.cat(parts) + head.hidden.bias)
        logits.append((head.output.weight @ hidden + head.output.bias)[0])
    return torch.stack(logits)
