"""Small awkward graphs and models for the tests of the engine."""

import numpy as np
import torch

from kgcf.data.graph import KnowledgeGraph
from kgcf.decoder import Decoder
from kgcf.encoder import Encoder, EncoderSettings


def random_graph(
    seed: int, entity_count: int = 9, relation_count: int = 2, triple_count: int = 14, weighted: bool = False
) -> KnowledgeGraph:
    """Triples with self-loops, parallel edges, a hub (entity 0) and an isolated entity (the last one)."""
    rng = np.random.default_rng(seed)
    last = max(entity_count - 1, 1)
    triples = np.stack(
        [
            rng.integers(0, last, triple_count),
            rng.integers(0, relation_count, triple_count),
            rng.integers(0, last, triple_count),
        ],
        axis=1,
    )
    triples[rng.random(triple_count) < 0.3, 0] = 0
    loops = rng.random(triple_count) < 0.1
    triples[loops, 2] = triples[loops, 0]
    parallel = np.flatnonzero(rng.random(triple_count) < 0.2)
    triples[parallel, 0], triples[parallel, 2] = triples[0, 0], triples[0, 2]
    weights = rng.choice([0.0, 0.5, 1.0, 2.0, -1.0], triple_count) if weighted else None
    return KnowledgeGraph.build(triples, entity_count, relation_count, weights)


def random_model(
    seed: int,
    relation_count: int = 2,
    treatment: bool = False,
    ties: bool = False,
    dtype: torch.dtype = torch.float64,
    **choices: object,
) -> tuple[Encoder, Decoder]:
    """A seeded encoder and decoder; `ties` rounds every parameter to halves, so that equal values abound."""
    generator = torch.Generator().manual_seed(seed)
    settings = EncoderSettings.model_validate({"layers": 3, "width": 4, "context": "none", **choices})
    encoder = Encoder(settings, relation_count, generator).to(dtype)
    decoder = Decoder(settings, relation_count, generator, hidden=5, treatment=treatment).to(dtype)
    with torch.no_grad():
        for layer in encoder.steps():
            if layer.layer_norm is not None:
                layer.layer_norm.weight.normal_(1, 0.3, generator=generator)
                layer.layer_norm.bias.normal_(0, 0.3, generator=generator)
        for parameter in encoder.parameters():
            if ties:
                parameter.copy_((4 * parameter).round() / 2)
    return encoder, decoder
