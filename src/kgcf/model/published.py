"""Published NBFNet state dicts as our encoder and decoder, to be run with `semantics = nbfnet` (docs/engine.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kgcf.errors import StorageError
from kgcf.model.decoder import Decoder
from kgcf.propagation.layers.encoder import Aggregate, Encoder, EncoderSettings, Message

Direction = Literal["plain", "fused"]


@dataclass(frozen=True, eq=False)
class PublishedModel:
    """A published model in our terms."""

    encoder: Encoder
    decoder: Decoder


def take_published(
    state: Mapping[str, Tensor],
    direction: Direction = "plain",
    message: Message = "distmult",
    aggregate: Aggregate = "pna",
    residual: bool = True,
) -> PublishedModel:
    """Our model with the weights of a state dict that has the published code's parameter names.

    Width, depth, relations, layer norm and free or dependent relation vectors are read off the weights;
    message, aggregation and residual leave no trace in them and are given. The published code has two
    paths that read edges in opposite directions: `plain` follows every edge from head to tail, `fused` is its
    fast kernel, equal to swapping every relation with its inverse among the layers' relation vectors.
    """
    query = _matrix(state, "query.weight")
    rows, width = query.shape
    if rows % 2:
        raise StorageError(f"'query.weight' has {rows} rows; there must be two for every relation, it and its inverse.")
    settings = EncoderSettings(
        layers=_count_layers(state),
        width=width,
        message=message,
        aggregate=aggregate,
        dependent="layers.0.relation_linear.weight" in state,
        residual=residual,
        layer_norm="layers.0.layer_norm.weight" in state,
        context="none",
    )
    hidden = len(_matrix(state, "mlp.0.weight"))
    generator = torch.Generator()  # whatever it draws is overwritten
    encoder = Encoder(settings, rows // 2, generator)
    decoder = Decoder(settings, rows // 2, generator, hidden=hidden)
    _fill(encoder, decoder, state, direction)
    return PublishedModel(encoder.to(query.dtype), decoder.to(query.dtype))


def _fill(encoder: Encoder, decoder: Decoder, state: Mapping[str, Tensor], direction: Direction) -> None:
    """Copy every published parameter to its place, columns and rows in our order; none may be missing or left over."""
    names = _published_names(encoder, decoder)
    _compare_names(names, state)
    columns = _column_order(encoder.settings)
    inverse = torch.arange(2 * encoder.relation_count).roll(encoder.relation_count)
    for name, parameter in names.items():
        values = state[name]
        if tuple(values.shape) != tuple(parameter.shape):
            raise StorageError(
                f"'{name}' has shape {tuple(values.shape)} where {tuple(parameter.shape)} is needed for width "
                f"{encoder.settings.width}, {encoder.relation_count} relations and {encoder.settings.aggregate} "
                "aggregation; check the model's aggregation and that the file is whole."
            )
        if name.endswith(".linear.weight"):
            values = values[:, columns]
        if direction == "fused" and ".relation" in name:
            values = values.view(2 * encoder.relation_count, -1)[inverse].view(values.shape)  # rows by relation
        with torch.no_grad():
            parameter.data = values.detach().clone()


def _published_names(encoder: Encoder, decoder: Decoder) -> dict[str, Tensor]:
    """Our parameters under the published names; the encoder's are the same, the decoder's are those of an MLP."""
    head = decoder.reached
    return dict(encoder.named_parameters()) | {
        "mlp.0.weight": head.hidden.weight,
        "mlp.0.bias": head.hidden.bias,
        "mlp.2.weight": head.output.weight,
        "mlp.2.bias": head.output.bias,
    }


def _compare_names(names: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    missing = [name for name in names if name not in state]
    if missing:
        raise StorageError(
            f"The state dict lacks {_list(missing)}. Give the state dict of an NBFNet model with a two-layer decoder, "
            "with its parameter names as they were published."
        )
    unknown = [name for name in state if name not in names]
    if unknown:
        raise StorageError(
            f"The state dict has {_list(unknown)}, which an NBFNet like this one does not have. "
            "Take out what belongs to something else, or check that nothing else is missing."
        )


def _count_layers(state: Mapping[str, Tensor]) -> int:
    """The layers 0, 1, 2, … that have an update; at least one, so that a lack of them is named."""
    count = 0
    while any(name.startswith(f"layers.{count}.") for name in state):
        count += 1
    return max(count, 1)


def _matrix(state: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in state:
        raise StorageError(
            f"The state dict lacks '{name}'. Give the state dict of an NBFNet model itself, "
            "not a checkpoint that holds it among other things."
        )
    if state[name].dim() != 2:
        raise StorageError(f"'{name}' has shape {tuple(state[name].shape)}; it must be a matrix.")
    return state[name]


def _column_order(settings: EncoderSettings) -> Tensor:
    """[columns] where every column of our update lies in the published one.

    Published: own D, then for every channel, for every statistic, for every scale. Ours: own D, then for every
    scale, for every statistic, for every channel.
    """
    width = settings.width
    mixed = torch.arange(width * settings.statistics * settings.scalers) + width
    mixed = mixed.view(width, settings.statistics, settings.scalers).permute(2, 1, 0)  # [D, A, 3] → [3, A, D]
    return torch.cat([torch.arange(width), mixed.flatten()])


def _list(names: list[str], most: int = 3) -> str:
    quoted = ", ".join(f"'{name}'" for name in names[:most])
    return quoted if len(names) <= most else f"{quoted} and {len(names) - most} more"
