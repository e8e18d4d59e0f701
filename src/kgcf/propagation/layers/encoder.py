"""The encoder's parameters and the update of one state (paper sec. 4.4); who talks to whom is for the plan to say."""

from __future__ import annotations

import math
from typing import Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

Message = Literal["distmult", "transe", "rotate"]
Aggregate = Literal["pna", "sum", "mean", "max", "min"]
Context = Literal["none", "unreached", "decoder", "layers"]
Semantics = Literal["grounded", "nbfnet"]

SMALLEST_SCALE = 1e-2  # 1/s is taken of at least this
SMALLEST_VARIANCE = 1e-6  # std is the root of at least this


class EncoderSettings(BaseModel):
    """What the encoder is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: int = Field(default=6, ge=1, description="Bellman–Ford iterations: how many edges a path may have.")
    width: int = Field(default=32, ge=1, description="Numbers in every entity's state.")
    message: Message = Field(default="distmult", description="How a relation acts on a state that travels along it.")
    aggregate: Aggregate = Field(default="pna", description="How an entity sums up the messages it receives.")
    dependent: bool = Field(
        default=False, description="Project relation vectors from the query relation instead of free ones."
    )
    residual: bool = Field(default=True, description="Add the state of the layer before.")
    layer_norm: bool = Field(default=True, description="Normalise every updated state before its ReLU.")
    context: Context = Field(
        default="unreached", description="Where the histogram of an entity's own relations enters."
    )
    semantics: Semantics = Field(
        default="grounded",
        description="Whether an entity that no path reaches has no state, or one made of biases (nbfnet: slow).",
    )

    @model_validator(mode="after")
    def _pair_up_for_rotation(self) -> Self:
        if self.message == "rotate" and self.width % 2:
            raise ValueError(f"RotatE messages need an even width, not {self.width}; choose {self.width + 1}.")
        return self

    @property
    def everybody(self) -> bool:
        """Whether entities have states that no path reaches."""
        return self.semantics == "nbfnet"

    @property
    def statistics(self) -> int:
        """A, the statistics an update receives: mean, max, min, std for PNA, otherwise one."""
        return 4 if self.aggregate == "pna" else 1

    @property
    def scalers(self) -> int:
        """How often every statistic enters an update: times 1, s and 1/s for PNA, otherwise once."""
        return 3 if self.aggregate == "pna" else 1


class Encoder(nn.Module):
    """Query vectors q_r and L layers of relation vectors and updates."""

    def __init__(self, settings: EncoderSettings, relation_count: int, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.relation_count = relation_count
        self.query = _embedding(2 * relation_count, settings.width, generator)
        self.layers = nn.ModuleList(EncoderLayer(settings, relation_count, generator) for _ in range(settings.layers))

    def queries(self, relations: Tensor) -> Tensor:
        """[B, D] the vector q_r of every query; it is also the boundary state of the query's head."""
        vectors: Tensor = self.query(relations)
        return vectors

    def steps(self) -> list[EncoderLayer]:
        """The layers in the order they run."""
        return [layer for layer in self.layers if isinstance(layer, EncoderLayer)]


class EncoderLayer(nn.Module):
    """One Bellman–Ford iteration: x ← x + ReLU(norm(W [x; f; s·f; f/max(s, .01)] + b)).

    f are the statistics of the messages at x and s is an entity's log-degree over the mean log-degree; without
    PNA the columns are [x; f]. The concatenation is never built: f is multiplied by the blocks of W that
    belong to it and the products are scaled.
    """

    def __init__(self, settings: EncoderSettings, relation_count: int, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        width = settings.width
        self.relation: nn.Embedding | None = None
        self.relation_linear: nn.Linear | None = None
        if settings.dependent:
            self.relation_linear = make_linear(width, 2 * relation_count * width, generator)
        else:
            self.relation = _embedding(2 * relation_count, width, generator)
        self.linear = make_linear((1 + settings.scalers * settings.statistics) * width, width, generator)
        self.layer_norm = nn.LayerNorm(width) if settings.layer_norm else None
        self.context_linear: nn.Linear | None = None
        if settings.context == "layers":
            self.context_linear = make_linear(2 * relation_count, width, generator, bias=False)

    def relation_vectors(self, q: Tensor) -> Tensor:
        """[B, 2R, D] projected from the queries [B, D] where relations are dependent, else the free [2R, D]."""
        if self.relation_linear is not None:
            vectors: Tensor = self.relation_linear(q)
            rows = self.relation_linear.out_features // self.settings.width
            return vectors.view(len(q), rows, self.settings.width)  # [B, 2R·D] → [B, 2R, D]
        assert self.relation is not None
        return self.relation.weight

    def project_context(self, context: Tensor) -> Tensor:
        """[…, D] what the relation histograms k(v) […, 2R] add to an update (`context = layers`)."""
        return functional.linear(context, self.context_weight)

    @property
    def context_weight(self) -> Tensor:
        """[D, 2R] what projects a relation histogram (`context = layers`)."""
        assert self.context_linear is not None
        return self.context_linear.weight

    def update(self, own: Tensor, statistics: Tensor, scale: Tensor | None, context: Tensor | None = None) -> Tensor:
        """[S, D] the next states, from own states [S, D], statistics [S, A, D], scale [S] and projected context [S, D].

        PNA reads its statistics as mean, max, min, std and needs the scale; the other aggregations ignore it.
        """
        updated = functional.linear(own, self.linear.weight[:, : own.shape[1]], self.linear.bias)
        updated = updated + self._mix(statistics.flatten(1), scale)  # [S, A, D] → [S, A·D]
        if context is not None:
            updated = updated + context
        if self.layer_norm is not None:
            updated = self.layer_norm(updated)
        updated = torch.relu(updated)
        return updated + own if self.settings.residual else updated

    def _mix(self, statistics: Tensor, scale: Tensor | None) -> Tensor:
        """[S, D] the part of W [x; f; s·f; f/s] that comes from f [S, A·D]."""
        width, columns = self.settings.width, statistics.shape[1]
        blocks = self.linear.weight[:, width:]
        if blocks.shape[1] == columns:
            return functional.linear(statistics, blocks)
        assert scale is not None, "PNA needs the scale of every state"
        stacked = blocks.view(width, 3, columns).transpose(0, 1).reshape(3 * width, columns)  # [D, 3·A·D] → [3·D, A·D]
        mixed = functional.linear(statistics, stacked).view(-1, 3, width)  # [S, 3·D] → [S, 3, D]
        plain, scaled, inverse = mixed.unbind(1)
        column = scale.unsqueeze(1)
        return plain + column * scaled + inverse / column.clamp(min=SMALLEST_SCALE)


def _embedding(rows: int, width: int, generator: torch.Generator) -> nn.Embedding:
    """A table of standard normal vectors."""
    return nn.Embedding(rows, width, _weight=torch.randn(rows, width, generator=generator))


def make_linear(inputs: int, outputs: int, generator: torch.Generator, bias: bool = True) -> nn.Linear:
    """A linear map whose weights and biases are uniform within ± 1/√inputs."""
    layer = nn.Linear(inputs, outputs, bias=bias, device="meta")  # draws nothing by itself
    bound = 1 / math.sqrt(inputs)
    for name, parameter in list(layer.named_parameters()):  # `to_empty` would import sympy, for a third of a second
        setattr(layer, name, nn.Parameter(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)))
    return layer
