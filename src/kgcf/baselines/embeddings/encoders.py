"""Encoders of graph networks: entity and relation vectors as PyKEEN representations. RGCN and CompGCN are PyKEEN's."""

from typing import Any

import torch
from pykeen.nn.message_passing import RGCNRepresentation
from pykeen.nn.representation import CombinedCompGCNRepresentations, Embedding, Representation
from pykeen.triples import CoreTriplesFactory
from torch import Tensor, nn

from kgcf.baselines.settings import CompgcnFields, LteFields, RgcnFields


def rgcn_entities(factory: CoreTriplesFactory, dimension: int, fields: RgcnFields) -> Representation:
    """σ(Σ_r Σ_j W_r x_j / c + W_0 x), W_r block-diagonal; it adds the inverse edges itself."""
    return RGCNRepresentation(
        triples_factory=factory,
        entity_representations_kwargs={"shape": dimension, "initializer": "xavier_normal"},
        num_layers=fields.layers,
        activation="tanh",
        edge_dropout=fields.edge_dropout,
        self_loop_dropout=fields.edge_dropout,
        decomposition="block",
        decomposition_kwargs={"num_blocks": fields.blocks},
    )


def compgcn_vectors(
    factory: CoreTriplesFactory, dimension: int, fields: CompgcnFields
) -> tuple[Representation, Representation]:
    """Entities tanh(BN((W_in Σ x_j ∘ r + W_out Σ … + W_loop x ∘ r_0) / 3)), relations W_rel r; numbered 2r, 2r + 1."""
    vector = {"shape": dimension, "initializer": "xavier_normal"}
    entities, relations = CombinedCompGCNRepresentations(
        triples_factory=factory,
        entity_representations_kwargs=vector,
        relation_representations_kwargs=vector,
        num_layers=fields.layers,
        layer_kwargs={"composition": "multiplication", "activation": "tanh", "dropout": fields.encoder_dropout},
    ).split()
    return entities, relations


class LinearEntities(Representation):  # type: ignore[misc]
    """LTE: drop(BN(W e)) of all entities, as far as `operations` names these; relations stay as they are."""

    def __init__(self, count: int, dimension: int, fields: LteFields) -> None:
        super().__init__(max_id=count, shape=dimension)
        self.base = Embedding(max_id=count, shape=dimension, initializer="xavier_normal")
        names = fields.operations.split(".")
        parts: list[nn.Module] = [nn.Linear(dimension, dimension, bias=False)]
        if "b" in names:
            parts.append(nn.BatchNorm1d(dimension))
        if "d" in names:
            parts.append(nn.Dropout(fields.encoder_dropout))
        self.transformation = nn.Sequential(*parts)
        self._made: Tensor | None = None  # the vectors of all entities with these weights

    def post_parameter_update(self) -> None:
        """Other weights make other vectors."""
        super().post_parameter_update()
        self._made = None

    def train(self, mode: bool = True) -> Any:  # noqa: ANN401
        """Vectors made in one mode are not those of the other."""
        self._made = None
        return super().train(mode)

    def _plain_forward(self, indices: Tensor | None = None) -> Tensor:
        """[N, D], or the rows asked for."""
        if self._made is None:
            self._made = self.transformation(self.base())
        return self._made if indices is None else self._made[indices]


def entity_offsets(count: int) -> Representation:
    """ConvE adds one number per tail."""
    return Embedding(max_id=count, shape=(), initializer=torch.nn.init.zeros_)
