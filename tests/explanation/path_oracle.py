"""Every simple path by plain recursion, every edge's importance by the dense reference."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
from kgcf.model.dense_scores import score_densely
from kgcf.model.kgcf import KGCF, DecoderSettings
from kgcf.propagation.dense.propagation import DenseEdges, propagate_densely
from kgcf.propagation.layers.encoder import EncoderSettings

Step = tuple[int, int, int]  # an edge as it is travelled: from, relation (≥ R: inverse), to


def small_model(seed: int, relation_count: int, treatment: bool = False, **choices: object) -> KGCF:
    """A model in double precision with random weights."""
    settings = EncoderSettings.model_validate({"layers": 4, "width": 4, "context": "none", **choices})
    generator = torch.Generator().manual_seed(seed)
    return KGCF(settings, DecoderSettings(hidden=6, treatment=treatment), relation_count, generator).double()


def dense_importance(
    model: KGCF,
    graph: KnowledgeGraph,
    asked: tuple[int, int, int],
    hidden: HiddenTriples,
    treated: bool | None,
    at: float = 1.0,
) -> tuple[float, NDArray[np.float64]]:
    """The logit and its gradient [L, 2E] by the weight of the message that enters through every adjacency position.

    All weights are `at`.
    """
    head, relation, tail = asked
    layers = model.encoder.settings.layers
    weights = torch.full((layers, 1, graph.edge_count), at, dtype=torch.float64, requires_grad=True)
    edges = DenseEdges.build(graph, model.encoder.query.weight)
    result = propagate_densely(
        model.encoder, edges, torch.tensor([head]), torch.tensor([relation]), hidden, edge_weights=weights
    )
    given = None if treated is None else torch.full((1, graph.entity_count), treated)
    logit = score_densely(model.decoder, result, given)[0, tail]
    (gradient,) = torch.autograd.grad(logit, [weights], allow_unused=True)
    found = np.zeros((layers, graph.edge_count)) if gradient is None else gradient[:, 0].numpy()
    return float(logit.detach()), found


def all_paths(
    graph: KnowledgeGraph, hidden: NDArray[np.int32], head: int, tail: int, longest: int
) -> Iterator[tuple[Step, ...]]:
    """Every path of at most `longest` visible edges that ends at the tail and visits nobody twice."""

    def go_on(path: tuple[Step, ...], visited: frozenset[int]) -> Iterator[tuple[Step, ...]]:
        at = path[-1][2] if path else head
        if at == tail:
            yield path
            return
        if len(path) == longest:
            return
        for edge in range(graph.offsets[at], graph.offsets[at + 1]):
            to = int(graph.edge_tails[edge])
            if to not in visited and graph.edge_triples[edge] % len(graph) not in hidden:
                yield from go_on((*path, (at, int(graph.edge_relations[edge]), to)), visited | {to})

    if head != tail:
        yield from go_on((), frozenset({head}))


def path_weight(graph: KnowledgeGraph, gradient: NDArray[np.float64], path: tuple[Step, ...], averaged: bool) -> float:
    """Mean or sum of the importance of the edges, the i-th taken in layer i."""
    total = 0.0
    for layer, (source, relation, target) in enumerate(path):
        position = graph.find_edges([target], graph.inverse(np.array([relation])), [source])[0]
        assert position >= 0
        total += gradient[layer, position]
    return total / len(path) if averaged else total
