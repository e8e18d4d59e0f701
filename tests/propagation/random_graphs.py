"""Small awkward graphs and models for the tests of the engine.

Gradients of max and min jump where two messages are equal. Two entities that look alike from the head send
messages that are equal in theory and differ in the last bit in practice, as the rows of a matrix product may, so
gradients are compared on graphs where no two entities look alike: every linked pair has a weight of its own, or
every triple a relation of its own. Ties are made where they are exact on any machine: parallel edges of
relations whose vectors are equal, and zeros.
"""

import numpy as np
import torch

from kgcf.data.graph import KnowledgeGraph
from kgcf.model.decoder import Decoder
from kgcf.propagation.layers.encoder import Encoder, EncoderSettings


def random_graph(
    seed: int, entity_count: int = 9, relation_count: int = 2, triple_count: int = 14, weighted: bool = True
) -> KnowledgeGraph:
    """Triples with self-loops, parallel edges, a hub (entity 0) and an isolated entity (the last one)."""
    rng = np.random.default_rng(seed)
    last = max(entity_count - 1, 1)
    heads, tails = rng.integers(0, last, triple_count), rng.integers(0, last, triple_count)
    triples = np.stack([heads, rng.integers(0, relation_count, triple_count), tails], axis=1)
    triples[rng.random(triple_count) < 0.3, 0] = 0
    loops = rng.random(triple_count) < 0.1
    triples[loops, 2] = triples[loops, 0]
    parallel = np.flatnonzero(rng.random(triple_count) < 0.2)
    triples[parallel, 0], triples[parallel, 2] = triples[:1, 0], triples[:1, 2]
    pairs = rng.normal(0, 1, (entity_count, entity_count)) * (rng.random((entity_count, entity_count)) < 0.9)
    low, high = triples[:, [0, 2]].min(axis=1), triples[:, [0, 2]].max(axis=1)
    return KnowledgeGraph.build(triples, entity_count, relation_count, pairs[low, high] if weighted else None)


def graph_of_own_relations(seed: int, entity_count: int = 9, triple_count: int = 14) -> KnowledgeGraph:
    """The same without weights, where every triple has a relation of its own."""
    triples = random_graph(seed, entity_count, 1000, triple_count).triples.copy()
    triples[:, 1] = np.arange(len(triples))
    return KnowledgeGraph.build(triples, entity_count, len(triples))


def random_model(
    seed: int,
    relation_count: int = 2,
    treatment: bool = False,
    ties: bool = False,
    dtype: torch.dtype = torch.float64,
    **choices: object,
) -> tuple[Encoder, Decoder]:
    """A seeded encoder and decoder; with `ties` all relations have the same vector, so that parallel edges tie."""
    generator = torch.Generator().manual_seed(seed)
    settings = EncoderSettings.model_validate({"layers": 3, "width": 4, "context": "none", **choices})
    encoder = Encoder(settings, relation_count, generator).to(dtype)
    decoder = Decoder(settings, relation_count, generator, hidden=5, treatment=treatment).to(dtype)
    with torch.no_grad():
        for layer in encoder.steps():
            if layer.layer_norm is not None:
                layer.layer_norm.weight.normal_(1, 0.3, generator=generator)
                layer.layer_norm.bias.normal_(0, 0.3, generator=generator)
            if ties and layer.relation is not None:
                layer.relation.weight[:] = layer.relation.weight[0].clone()
    return encoder, decoder
