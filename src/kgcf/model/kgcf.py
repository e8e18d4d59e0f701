"""KGCF: encoder + decoder with a treatment input; without treatment and context it is NBFNet (grounded)."""

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from kgcf.model.decoder import Decoder
from kgcf.propagation.layers.encoder import Encoder, EncoderSettings
from kgcf.propagation.layers.sparse import propagate
from kgcf.propagation.plan.contexts import collect_contexts
from kgcf.propagation.plan.planner import Plan


class DecoderSettings(BaseModel):
    """What the decoder is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: int = Field(default=64, ge=1, description="Units of the hidden layer.")
    treatment: bool = Field(default=True, description="Tell the decoder the treatment T of every candidate.")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What propagation knows about the candidates of a batch, before the treatment is looked at."""

    states: Tensor  # [B, K, D] x_L of every candidate, 0 if unreached
    queries: Tensor  # [B, D]
    reached: Tensor  # [B, K] whether any walk leads to the candidate
    context: Tensor | None  # [B, K, H] projected, where the decoder reads it


class KGCF(nn.Module):
    """g(f(h, r, t), T): logits of candidates from a plan and their treatments (eq. 7 and 8)."""

    def __init__(
        self, encoder: EncoderSettings, decoder: DecoderSettings, relation_count: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.relation_count = relation_count
        self.encoder = Encoder(encoder, relation_count, generator)
        self.decoder = Decoder(encoder, relation_count, generator, decoder.hidden, decoder.treatment)

    @property
    def device(self) -> torch.device:
        """Where the weights are, and everything is computed."""
        return self.encoder.query.weight.device

    def encode(self, plan: Plan) -> Evidence:
        """Propagate a plan with candidates [B, K]."""
        found = propagate(self.encoder, plan)
        context = candidate_contexts(self.decoder, plan, found.queries)
        return Evidence(found.of_candidates(), found.queries, found.reached, context)

    def decode(self, evidence: Evidence, treated: Tensor | None) -> Tensor:
        """[B, K] logits under the treatments given; flipping them changes nothing but this."""
        q = evidence.queries.unsqueeze(1)  # [B, 1, D]
        reached = evidence.reached if self.decoder.variant == "unreached" else None
        logits: Tensor = self.decoder(evidence.states, q, treated, evidence.context, reached)
        return logits

    def decode_unreached(self, evidence: Evidence, treated: Tensor | None) -> Tensor:
        """[B, K] logits by the head of the unreached, for every candidate, as if no path had led to it.

        That head learns from all answers, or it would see none: a query with an unreached answer has no
        evidence. The query vectors belong to the paths and are not moved by it.
        """
        assert evidence.context is not None
        q = evidence.queries.detach().unsqueeze(1)  # [B, 1, D]
        return self.decoder.background(q, treated, evidence.context)


def candidate_contexts(decoder: Decoder, plan: Plan, like: Tensor) -> Tensor | None:
    """[B, K, H] the projected contexts of a plan's candidates; None where the decoder does not read them."""
    if decoder.variant not in ("decoder", "unreached"):
        return None
    assert plan.candidates is not None
    contexts = collect_contexts(plan.graph, plan.hidden, np.arange(len(plan))[:, None], plan.candidates)
    return contexts.project(decoder.context_weight)[contexts.row_tensor(like)]
