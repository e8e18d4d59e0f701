"""Batches of queries on random graphs, and the dense answer to compare with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, hide_nothing, hide_pairs, hide_triples
from kgcf.model.decoder import Decoder
from kgcf.model.dense_scores import score_densely
from kgcf.model.kgcf import KGCF, DecoderSettings
from kgcf.propagation.dense.propagation import DenseEdges, DenseStates, propagate_densely
from kgcf.propagation.layers.encoder import Encoder
from kgcf.propagation.plan.planner import Plan


@dataclass(frozen=True, eq=False)
class Batch:
    heads: NDArray[np.int64]
    relations: NDArray[np.int64]
    candidates: NDArray[np.int64]
    hidden: HiddenTriples

    def take(self, part: slice) -> "Batch":
        begin, end, _ = part.indices(len(self.heads))
        offsets = self.hidden.offsets[begin : end + 1]
        hidden = HiddenTriples(offsets - offsets[0], self.hidden.triples[offsets[0] : offsets[-1]])
        return Batch(self.heads[part], self.relations[part], self.candidates[part], hidden)


def random_batch(seed: int, graph: KnowledgeGraph, size: int = 5, width: int = 4, remove: str = "triple") -> Batch:
    """Queries about triples of the graph, half of them turned round; candidates repeat, one is the isolated entity."""
    rng = np.random.default_rng(seed)
    triples = graph.triples[rng.integers(0, len(graph), size)].astype(np.int64)
    turned = rng.random(size) < 0.5
    heads = np.where(turned, triples[:, 2], triples[:, 0])
    relations = triples[:, 1] + turned * graph.relation_count
    tails = np.where(turned, triples[:, 0], triples[:, 2])
    candidates = rng.integers(0, graph.entity_count, (size, width))
    candidates[:, 0] = tails
    candidates[:, -1] = candidates[:, 1]
    candidates[0, 1] = graph.entity_count - 1
    if remove == "triple":
        hidden = hide_triples(graph, heads, relations, tails)
    elif remove == "pair":
        hidden = hide_pairs(graph, heads, candidates)
    else:
        hidden = hide_nothing(size)
    return Batch(heads, relations, candidates, hidden)


def dense_states(
    encoder: Encoder, graph: KnowledgeGraph, batch: Batch, edge_weights: Tensor | None = None
) -> DenseStates:
    return propagate_densely(
        encoder,
        DenseEdges.build(graph, encoder.query.weight),
        torch.from_numpy(batch.heads),
        torch.from_numpy(batch.relations),
        batch.hidden,
        edge_weights=edge_weights,
    )


def dense_logits(
    encoder: Encoder, decoder: Decoder, graph: KnowledgeGraph, batch: Batch, treated: Tensor | None = None
) -> Tensor:
    """[B, N] logits of all entities."""
    return score_densely(decoder, dense_states(encoder, graph, batch), treated)


def assemble(encoder: Encoder, decoder: Decoder) -> KGCF:
    """The model that consists of this encoder and this decoder."""
    settings = DecoderSettings(hidden=decoder.reached.hidden.out_features, treatment=decoder.treatment)
    model = KGCF(encoder.settings, settings, encoder.relation_count, torch.Generator())
    model.encoder, model.decoder = encoder, decoder
    return model


def sparse_logits(encoder: Encoder, decoder: Decoder, plan: Plan, treated: Tensor | None = None) -> Tensor:
    """[B, K] logits of a plan's candidates, as the trainer computes them."""
    model = assemble(encoder, decoder)
    return model.decode(model.encode(plan), treated)


def of_candidates(values: Tensor, batch: Batch) -> Tensor:
    """[B, K, …] the candidates' entries of [B, N, …]."""
    return values[torch.arange(len(batch.heads))[:, None], torch.from_numpy(batch.candidates)]


def gradients(value: Tensor, parameters: Sequence[Tensor], seed: int = 0) -> list[Tensor]:
    """Gradients of a random combination of the values, zeros where a parameter has no part in them."""
    factors = torch.randn(value.shape, dtype=value.dtype, generator=torch.Generator().manual_seed(seed))
    if not value.requires_grad:
        return [torch.zeros_like(parameter) for parameter in parameters]
    found = torch.autograd.grad((value * factors).sum(), parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def assert_exact(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def assert_all_close(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert_exact(one, other)
