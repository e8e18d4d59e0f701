"""Embedding and graph-network baselines by name: vectors, score function and training scheme of each."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pykeen.losses import BCEWithLogitsLoss, CrossEntropyLoss, NSSALoss
from pykeen.models import ERModel
from pykeen.nn.modules import Interaction
from pykeen.nn.representation import Embedding, Representation
from pykeen.triples import CoreTriplesFactory
from pykeen.utils import NoRandomSeedNecessary
from torch import nn

from kgcf.baselines import settings as kinds
from kgcf.baselines.embeddings import encoders, interactions
from kgcf.baselines.embeddings.pykeen_model import PykeenBaseline, Scheme
from kgcf.baselines.settings import BaselineSettings, OneToAllSettings, SampledSettings
from kgcf.data.graph import KnowledgeGraph

Vectors = tuple[Sequence[Representation], Sequence[Representation]]  # of entities and of relations


def build(
    settings: BaselineSettings, graph: KnowledgeGraph, batch_size: int, learning_rate: float, seed: int
) -> PykeenBaseline:
    """The model with the weights of its seed; torch's own stream is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(settings, SampledSettings):
            return _sampled(settings, graph, batch_size, learning_rate)
        assert isinstance(settings, OneToAllSettings)
        return _one_to_all(settings, graph, batch_size, learning_rate)


def _sampled(settings: SampledSettings, graph: KnowledgeGraph, batch_size: int, learning_rate: float) -> PykeenBaseline:
    """Distances, trained against negatives on both sides; no inverse relations."""
    factory = _factory(graph.triples, graph.entity_count, graph.relation_count)
    counts = graph.entity_count, graph.relation_count
    loss = NSSALoss(margin=settings.margin, adversarial_temperature=settings.temperature)
    interaction, (entities, relations) = _DISTANCES[settings.model](settings, *counts)
    order = np.arange(2 * graph.relation_count)
    scheme = Scheme(
        factory,
        graph.relation_count,
        order,
        batch_size,
        learning_rate,
        negatives=settings.negatives,
        offset=settings.margin,
    )
    return PykeenBaseline(_model(factory, interaction, entities, relations, loss), scheme)


def _one_to_all(
    settings: OneToAllSettings, graph: KnowledgeGraph, batch_size: int, learning_rate: float
) -> PykeenBaseline:
    """Every question against all entities; inverse relations have vectors of their own."""
    count, relations = graph.entity_count, graph.relation_count
    order = np.arange(2 * relations)
    if settings.model.startswith("compgcn"):  # PyKEEN's CompGCN numbers r as 2r and its inverse as 2r + 1
        order = np.concatenate([2 * np.arange(relations), 2 * np.arange(relations) + 1])
    forward = graph.triples.astype(np.int64)
    backward = np.stack([forward[:, 2], forward[:, 1] + relations, forward[:, 0]], axis=1)
    both = np.concatenate([forward, backward])
    both[:, 1] = order[both[:, 1]]
    factory = _factory(both, count, 2 * relations)
    entity_vectors, relation_vectors = _vectors(settings, graph)
    interaction = _interaction(settings)
    if isinstance(settings, kinds.ConvolutionSettings):
        entity_vectors = [*entity_vectors, encoders.entity_offsets(count)]
    loss = CrossEntropyLoss() if settings.loss == "ce" else BCEWithLogitsLoss()
    model = _model(factory, interaction, entity_vectors, relation_vectors, loss)
    scheme = Scheme(factory, relations, order, batch_size, learning_rate, label_smoothing=settings.label_smoothing)
    return PykeenBaseline(model, scheme)


def _vectors(settings: OneToAllSettings, graph: KnowledgeGraph) -> Vectors:
    """Entity and relation vectors: plain, or made by an encoder."""
    count, relations, dimension = graph.entity_count, 2 * graph.relation_count, settings.dimension
    embedding = partial(Embedding, initializer="xavier_normal")
    if isinstance(settings, kinds.RgcnTranse | kinds.RgcnDistmult | kinds.RgcnConve):
        encoder: nn.Module = encoders.Rgcn(graph, dimension, settings)
        entities = encoders.EncodedEntities(encoder, count, dimension)
        return [entities], [embedding(max_id=relations, shape=dimension)]
    if isinstance(settings, kinds.CompgcnTranse | kinds.CompgcnDistmult | kinds.CompgcnConve):
        factory = _factory(graph.triples, count, graph.relation_count, inverse=True)
        encoded, with_relations = encoders.compgcn_vectors(factory, dimension, settings)
        return [encoded], [with_relations]
    if isinstance(settings, kinds.LteTranse | kinds.LteDistmult | kinds.LteConve):
        encoder = encoders.LinearEncoder(dimension, settings)
        entities = encoders.EncodedEntities(encoder, count, dimension)
        return [entities], [embedding(max_id=relations, shape=dimension)]
    if settings.model == "complex":
        embedding = partial(Embedding, dtype=torch.cfloat, initializer="xavier_normal")
    width = dimension
    if isinstance(settings, kinds.TuckerSettings | kinds.LowferSettings):
        width = settings.relation_dimension
    dropout = settings.dropout if isinstance(settings, kinds.DistmultSettings) else None
    return (
        [embedding(max_id=count, shape=dimension, dropout=dropout)],
        [embedding(max_id=relations, shape=width, dropout=dropout)],
    )


def _interaction(settings: OneToAllSettings) -> Interaction | str:
    """The score function."""
    if isinstance(settings, kinds.TranslationDecoder):
        return interactions.TranslationInteraction(settings.margin)
    if isinstance(settings, kinds.ConvolutionSettings):
        return _convolution(settings)
    if isinstance(settings, kinds.TuckerSettings):
        return interactions.CoreInteraction(
            embedding_dim=settings.dimension,
            relation_dim=settings.relation_dimension,
            head_dropout=settings.head_dropout,
            relation_dropout=settings.relation_dropout,
            head_relation_dropout=settings.output_dropout,
        )
    if isinstance(settings, kinds.LowferSettings):
        dropouts = settings.head_dropout, settings.product_dropout, settings.output_dropout
        return interactions.LowferInteraction(settings.dimension, settings.relation_dimension, settings.rank, *dropouts)
    return "ComplEx" if settings.model == "complex" else interactions.ProductInteraction()


def _convolution(settings: kinds.ConvolutionSettings) -> Interaction:
    """ConvE's, on vectors as images that are nearly square."""
    height, width = settings.image
    return interactions.ConvolutionInteraction(
        output_channels=settings.filters,
        embedding_height=height,
        embedding_width=width,
        kernel_height=settings.kernel,
        kernel_width=settings.kernel,
        input_dropout=settings.input_dropout,
        feature_map_dropout=settings.feature_dropout,
        output_dropout=settings.hidden_dropout,
        embedding_dim=settings.dimension,
    )


def _translation(settings: SampledSettings, count: int, relations: int) -> tuple[Interaction | str, Vectors]:
    vector = partial(Embedding, shape=settings.dimension, initializer=_uniform(_span(settings)))
    return interactions.TranslationInteraction(margin=0.0), ([vector(max_id=count)], [vector(max_id=relations)])


def _rotation(settings: SampledSettings, count: int, relations: int) -> tuple[Interaction | str, Vectors]:
    span = _span(settings)
    entities = Embedding(max_id=count, shape=settings.dimension, dtype=torch.cfloat, initializer=_uniform(span))
    rotations = Embedding(
        max_id=relations,
        shape=settings.dimension,
        dtype=torch.cfloat,
        initializer="init_phases",
        constrainer="complex_normalize",
    )
    return interactions.RotationInteraction(), ([entities], [rotations])


def _hierarchy(settings: SampledSettings, count: int, relations: int) -> tuple[Interaction | str, Vectors]:
    assert isinstance(settings, kinds.HakeSettings)
    vector = partial(Embedding, shape=settings.dimension)
    modulus, phase = _uniform(_span(settings)), _uniform(math.pi)
    entities = [vector(max_id=count, initializer=modulus), vector(max_id=count, initializer=phase)]
    first = (nn.init.ones_, nn.init.zeros_, phase)
    interaction = interactions.HakeInteraction(settings.modulus_weight, settings.phase_weight * _span(settings))
    return interaction, (entities, [vector(max_id=relations, initializer=start) for start in first])


_DISTANCES: dict[str, Callable[[SampledSettings, int, int], tuple[Interaction | str, Vectors]]] = {
    "transe": _translation,
    "rotate": _rotation,
    "hake": _hierarchy,
}


def _span(settings: SampledSettings) -> float:
    """How far from 0 first values lie: (γ + 2) / D, so that first distances are about γ."""
    return (settings.margin + 2) / settings.dimension


def _uniform(span: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def draw(tensor: torch.Tensor) -> torch.Tensor:
        plain = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        nn.init.uniform_(plain, -span, span)
        return tensor

    return draw


def _factory(
    triples: NDArray[np.integer[Any]], entity_count: int, relation_count: int, inverse: bool = False
) -> CoreTriplesFactory:
    return CoreTriplesFactory(
        mapped_triples=torch.from_numpy(np.array(triples, dtype=np.int64)),
        num_entities=entity_count,
        num_relations=relation_count,
        create_inverse_triples=inverse,
    )


def _model(
    factory: CoreTriplesFactory,
    interaction: Interaction | str,
    entities: Sequence[Representation],
    relations: Sequence[Representation],
    loss: nn.Module,
) -> ERModel:
    return ERModel(
        triples_factory=factory,
        interaction=interaction,
        entity_representations=list(entities),
        relation_representations=list(relations),
        loss=loss,
        random_seed=NoRandomSeedNecessary,
    )
