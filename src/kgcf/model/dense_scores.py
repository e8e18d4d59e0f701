"""The obvious scores of all entities, from dense states: the oracle of `all_entities`."""

from torch import Tensor

from kgcf.model.decoder import Decoder
from kgcf.propagation.dense.propagation import DenseStates


def score_densely(decoder: Decoder, result: DenseStates, treated: Tensor | None = None) -> Tensor:
    """[B, N] logits of all entities; with `rank_reached_first` they become ranking scores."""
    shape = result.reached.shape  # B, N
    q = result.queries.unsqueeze(1).expand(*shape, -1)  # [B, D] → [B, N, D]
    if decoder.variant not in ("decoder", "unreached"):
        return decoder(result.states, q, treated)  # type: ignore[no-any-return]
    assert result.histograms is not None
    context = decoder.project_context(result.histograms).expand(*shape, -1)
    reached = result.reached if decoder.variant == "unreached" else None
    return decoder(result.states, q, treated, context, reached)  # type: ignore[no-any-return]
