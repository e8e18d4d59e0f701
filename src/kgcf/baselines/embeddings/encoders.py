"""Encoders of graph networks: entity and relation vectors as PyKEEN representations."""

from typing import Any

import numpy as np
import torch
from pykeen.nn.representation import CombinedCompGCNRepresentations, Embedding, Representation
from pykeen.triples import CoreTriplesFactory
from torch import Tensor, nn

from kgcf.baselines.settings import CompgcnFields, LteFields, RgcnFields
from kgcf.data.graph import KnowledgeGraph


class EncodedEntities(Representation):  # type: ignore[misc]
    """Vectors of all entities, made at once from base vectors and kept until the weights or the mode change."""

    def __init__(self, encoder: nn.Module, count: int, dimension: int) -> None:
        super().__init__(max_id=count, shape=dimension)
        self.base = Embedding(max_id=count, shape=dimension, initializer="xavier_normal")
        self.encoder = encoder
        self._made: Tensor | None = None

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
            self._made = self.encoder(self.base())
        return self._made if indices is None else self._made[indices]


class Rgcn(nn.Module):
    """x' = tanh(Σ_k Σ_j W_k x_j / c + W_0 x + b) over relations k, inverse ones too; W_k block-diagonal, c = |N_k(i)|.

    PyKEEN's encoder makes a table of every relation times every entity, which FB15k-237 has no room for; this one
    multiplies the vectors at the ends of edges.
    """

    def __init__(self, graph: KnowledgeGraph, dimension: int, fields: RgcnFields) -> None:
        super().__init__()
        size = dimension // fields.blocks
        shape = (2 * graph.relation_count, fields.blocks, size, size)
        self.matrices = nn.ParameterList(nn.init.xavier_normal_(torch.empty(shape)) for _ in range(fields.layers))
        self.own = nn.ModuleList(nn.Linear(dimension, dimension) for _ in range(fields.layers))
        self.edge_dropout = fields.edge_dropout
        sources = np.repeat(np.arange(graph.entity_count), np.diff(graph.offsets))
        order = np.argsort(graph.edge_relations, kind="stable")
        ends = [part[order].astype(np.int64) for part in (sources, graph.edge_tails)]
        relations = graph.edge_relations[order].astype(np.int64)
        _, group, counts = np.unique(relations * graph.entity_count + ends[1], return_inverse=True, return_counts=True)
        self._bounds = np.searchsorted(relations, np.arange(2 * graph.relation_count + 1)).tolist()
        self._ends = tuple(torch.from_numpy(part) for part in ends)
        self._shares = torch.from_numpy((1.0 / counts[group]).astype(np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] → [N, D]."""
        for matrices, own in zip(self.matrices, self.own, strict=True):
            x = torch.tanh(own(x) + self._messages(x, matrices))
        return x

    def _messages(self, x: Tensor, matrices: Tensor) -> Tensor:
        """[N, D] what arrives along the edges; while training some of them are left out."""
        sources, targets = (part.to(x.device) for part in self._ends)
        shares = self._shares.to(x.device)
        if self.training and self.edge_dropout:
            shares = shares * (torch.rand(len(shares), device=x.device) >= self.edge_dropout)
        parts = x.view(len(x), matrices.shape[1], 1, matrices.shape[2])  # [N, blocks, 1, d]
        moved = [
            (parts[sources[first:last]] @ matrices[relation]).view(-1, x.shape[1])
            for relation, (first, last) in enumerate(zip(self._bounds, self._bounds[1:], strict=False))
            if last > first
        ]
        return torch.zeros_like(x).index_add(0, targets, torch.cat(moved) * shares[:, None])


class LinearEncoder(nn.Sequential):
    """LTE: drop(BN(W e)), as far as `operations` names these; no graph, and relations stay as they are."""

    def __init__(self, dimension: int, fields: LteFields) -> None:
        names = fields.operations.split(".")
        parts: list[nn.Module] = [nn.Linear(dimension, dimension, bias=False)]
        if "b" in names:
            parts.append(nn.BatchNorm1d(dimension))
        if "d" in names:
            parts.append(nn.Dropout(fields.encoder_dropout))
        super().__init__(*parts)


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


def entity_offsets(count: int) -> Representation:
    """ConvE adds one number per tail."""
    return Embedding(max_id=count, shape=(), initializer=torch.nn.init.zeros_)
