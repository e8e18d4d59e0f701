"""Score functions that PyKEEN lacks, in its scheme: HAKE, LowFER, RotatE's sum of moduli; and all entities at once.

PyKEEN multiplies out a table [B, N, D] to score B questions against N tails; the models that are trained so have one
matrix product instead, and distances are ranked by kernels.
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from pykeen.nn.modules import ConvEInteraction, DistMultInteraction, Interaction, TuckERInteraction
from torch import Tensor, nn
from torch.nn import functional

from kgcf.baselines.embeddings.distances import can_rank, city_block, half_angles, moduli, scaled


def _all_tails(h: Tensor, t: Tensor) -> bool:
    """Whether heads [B, 1, D] are asked about the same tails [1, N, D]."""
    return h.ndim == 3 and t.ndim == 3 and h.shape[1] == 1 and t.shape[0] == 1


def _all_heads(h: Tensor, t: Tensor) -> bool:
    """Whether tails [B, 1, D] are asked about the same heads [1, N, D]."""
    return _all_tails(t, h)


def _unit_vectors(t: Tensor) -> Tensor:
    """[1, D, D]: the products of a vector with these are the vector itself."""
    return torch.eye(t.shape[-1], dtype=t.dtype, device=t.device)[None]


class ProductInteraction(DistMultInteraction):  # type: ignore[misc]
    """DistMult."""

    def forward(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Scores of h [..., D], r [..., D], t [..., D]."""
        joint = h * r
        return joint[:, 0] @ t[0].T if _all_tails(joint, t) else super().forward(h, r, t)


class CoreInteraction(TuckERInteraction):  # type: ignore[misc]
    """TuckER."""

    def forward(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Scores of h [..., D], r [..., D'], t [..., D]."""
        if not _all_tails(h, t):
            return super().forward(h, r, t)  # type: ignore[no-any-return]
        joint: Tensor = super().forward(h, r, _unit_vectors(t))
        return joint @ t[0].T


class ConvolutionInteraction(ConvEInteraction):  # type: ignore[misc]
    """ConvE."""

    def forward(self, h: Tensor, r: Tensor, t: Sequence[Tensor]) -> Tensor:
        """Scores of h [..., D], r [..., D] and tails (vector [..., D], offset [...])."""
        vectors, offsets = t
        if not _all_tails(h, vectors):
            return super().forward(h, r, t)  # type: ignore[no-any-return]
        units = _unit_vectors(vectors)
        joint: Tensor = super().forward(h, r, (units, units.new_zeros(units.shape[:-1])))
        return joint @ vectors[0].T + offsets


class TranslationInteraction(Interaction):  # type: ignore[misc]
    """γ − ‖h + r − t‖₁, distances to all tails without a table of differences."""

    def __init__(self, margin: float) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Scores of h [..., D], r [..., D], t [..., D]."""
        if can_rank(h, r, t) and _all_heads(h, t):
            return self.margin - city_block((t - r)[:, 0], h[0])
        moved = h + r
        if can_rank(moved, t) and _all_tails(moved, t):
            return self.margin - city_block(moved[:, 0], t[0])
        if _all_tails(moved, t):
            return self.margin - torch.cdist(moved[:, 0], t[0], p=1)
        return self.margin - (moved - t).abs().sum(dim=-1)


class RotationInteraction(Interaction):  # type: ignore[misc]
    """−Σ|h ∘ r − t|: the sum of moduli that RotatE is published with. PyKEEN's takes the Euclidean norm, whatever p."""

    is_complex: ClassVar[bool] = True

    def forward(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Scores of complex h, r, t, each [..., D]; the moduli of r are 1, so that a tail can be turned back."""
        if can_rank(h, r, t) and _all_heads(h, t):
            return -moduli((t * r.conj())[:, 0], h[0])
        turned = h * r
        if can_rank(turned, t) and _all_tails(turned, t):
            return -moduli(turned[:, 0], t[0])
        return -(turned - t).abs().sum(dim=-1)


class HakeInteraction(Interaction):  # type: ignore[misc]
    """−w_m ‖h_m ∘ (r_m + b) − t_m ∘ (1 − b)‖₂ − w_p Σ|sin((h_p + r_p − t_p) / 2)|, with r_m ≥ 0 and −r_m ≤ b ≤ 1.

    Entities have moduli and phases; relations moduli, biases and phases. The loss adds γ.
    """

    entity_shape: Sequence[str] = ("d", "d")
    relation_shape: Sequence[str] = ("d", "d", "d")

    def __init__(self, modulus_weight: float, phase_weight: float) -> None:
        super().__init__()
        self.modulus_weight = nn.Parameter(torch.tensor([modulus_weight]))
        self.phase_weight = nn.Parameter(torch.tensor([phase_weight]))

    def forward(self, h: Sequence[Tensor], r: Sequence[Tensor], t: Sequence[Tensor]) -> Tensor:
        """Scores of entities (modulus, phase) and relations (modulus, bias, phase), each [..., D]."""
        (h_modulus, h_phase), (t_modulus, t_phase) = h, t
        r_modulus, bias, r_phase = r
        r_modulus = r_modulus.abs()
        bias = torch.maximum(bias.clamp(max=1.0), -r_modulus)
        h_scale, t_scale = r_modulus + bias, 1 - bias
        quick = can_rank(h_modulus, t_modulus)
        if quick and _all_heads(h_modulus, t_modulus):
            lengths = scaled((t_modulus * t_scale)[:, 0], h_scale[:, 0], h_modulus[0])
            phases = half_angles((t_phase - r_phase)[:, 0], h_phase[0])
        elif quick and _all_tails(h_modulus, t_modulus):
            lengths = scaled((h_modulus * h_scale)[:, 0], t_scale[:, 0], t_modulus[0])
            phases = half_angles((h_phase + r_phase)[:, 0], t_phase[0])
        else:
            lengths = torch.linalg.vector_norm(h_modulus * h_scale - t_modulus * t_scale, dim=-1)
            phases = torch.sin((h_phase + r_phase - t_phase) / 2).abs().sum(dim=-1)
        return -self.modulus_weight * lengths - self.phase_weight * phases


class LowferInteraction(Interaction):  # type: ignore[misc]
    """t · BN(norm(root(Σ_k (Uᵀh ∘ Vᵀr)))), where root is the signed square root and norm the Euclidean one."""

    relation_shape: Sequence[str] = ("e",)

    def __init__(
        self,
        dimension: int,
        relation_dimension: int,
        rank: int,
        head_dropout: float,
        product_dropout: float,
        output_dropout: float,
    ) -> None:
        super().__init__()
        self.rank = rank
        self.head_factors = nn.Parameter(torch.empty(dimension, rank * dimension))
        self.relation_factors = nn.Parameter(torch.empty(relation_dimension, rank * dimension))
        self.head_norm, self.output_norm = nn.BatchNorm1d(dimension), nn.BatchNorm1d(dimension)
        self.head_dropout, self.product_dropout = nn.Dropout(head_dropout), nn.Dropout(product_dropout)
        self.output_dropout = nn.Dropout(output_dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the factors."""
        for factors in (self.head_factors, self.relation_factors):
            nn.init.uniform_(factors, -1 / math.sqrt(len(factors)), 1 / math.sqrt(len(factors)))

    def forward(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Scores of h [..., D], r [..., D'], t [..., D]."""
        heads = self.head_dropout(self.head_norm(h.reshape(-1, h.shape[-1]))).view(h.shape)
        product = self.product_dropout((heads @ self.head_factors) * (r @ self.relation_factors))
        shape = product.shape[:-1]
        pooled = product.reshape(*shape, h.shape[-1], self.rank).sum(dim=-1)
        rooted = torch.sign(pooled) * torch.sqrt(pooled.abs() + 1e-12)
        joint = self.output_norm(functional.normalize(rooted, dim=-1).reshape(-1, h.shape[-1]))
        return torch.einsum("...d,...d->...", self.output_dropout(joint).view(*shape, -1), t)


_PRODUCTS = (ProductInteraction, CoreInteraction, ConvolutionInteraction)
_DISTANCES = (TranslationInteraction, RotationInteraction, HakeInteraction)


def ranks_without_table(interaction: Interaction, device: torch.device) -> bool:
    """Whether ranking all entities needs no table [B, N, D]: by a matrix product, or by kernels on the CPU."""
    return isinstance(interaction, _PRODUCTS) or (isinstance(interaction, _DISTANCES) and device.type == "cpu")
