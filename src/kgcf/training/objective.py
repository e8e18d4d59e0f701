"""The losses of the paper as functions: factual (eq. 9), counterfactual (eq. 10), discrepancy (eq. 11)."""

import math
from typing import Annotated, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor
from torch.nn import functional

Discrepancy = Literal["kl", "frobenius", "mean"]
Weighting = float | Literal["equal", "distance"]
SMALLEST_VARIANCE = 1e-3


class ObjectiveSettings(BaseModel):
    """What is minimised: L_F + α L_CF + β L_disc."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: int = Field(
        default=8, ge=1, description="True answers of one question that a pass learns from; hidden together."
    )
    answers_share: float = Field(
        default=0.25, gt=0, le=1, description="Of a question's known answers, the most that a pass hides; at least one."
    )
    negatives: int = Field(default=32, ge=1, description="Strict negatives of every pass.")
    negatives_from: Literal["all", "reached"] = Field(
        default="all", description="Draw negatives among all entities, or among those that the head reaches."
    )
    temperature: float = Field(
        default=1.0, ge=0, description="Of the self-adversarial weights of negatives; 0: all weigh 1/n."
    )
    alpha: float = Field(default=0.01, ge=0, description="Weight of the counterfactual loss.")
    beta: float = Field(default=0.0, ge=0, description="Weight of the discrepancy loss.")
    cf_target: Literal["outcome", "printed"] = Field(
        default="outcome", description="Target of a positive under T^CF: its substitute's outcome A^CF, or always 1."
    )
    cf_weight: Literal["equal", "distance"] | Annotated[float, Field(gt=0, le=1)] = Field(
        default="equal",
        description="What a positive weighs in L_CF: as all others, less the farther its substitute is, or a number: "
        "only this share of the matched, the nearest.",
    )
    cf_state: Literal["answer", "substitute", "both"] = Field(
        default="answer",
        description="What L_CF decodes: the answer's state under T^CF, its substitute as a question, or both.",
    )
    cf_pairs: Annotated[int, Field(ge=1)] | Literal["all"] = Field(
        default=8, description="Substitutes per batch that L_CF asks for as questions, or all."
    )
    disc: Discrepancy = Field(default="kl", description="Distance between factual and counterfactual states.")
    disc_pairs: Annotated[int, Field(ge=1)] | Literal["all"] = Field(
        default=8, description="Matched positives per batch whose substitutes are propagated for L_disc, or all."
    )

    @model_validator(mode="after")
    def _target_is_read(self) -> Self:
        if self.cf_state == "substitute" and self.cf_target == "printed":
            raise ValueError(
                "a substitute asked for as a question has its own outcome as target, never the printed 1. "
                "Leave objective.cf_target = outcome, or set objective.cf_state to answer or both"
            )
        return self


def query_losses(logits: Tensor, targets: Tensor, temperature: float, counted: Tensor | None = None) -> Tensor:
    """[B, A] −log p(answer) − Σ_i w_i log(1 − p(negative i)), with A answers first in the logits [B, A + K].

    `targets` [B, A] is 1 where an answer counts as true and 0 where it counts as false (then it contributes
    −log(1 − p)). The weights are softmax(logit / temperature), not differentiated; 1/K at temperature 0.
    Negatives outside `counted` [B, K] weigh nothing; an answer without any has its own term alone.
    """
    count = targets.shape[1]
    answers, negatives = logits[:, :count], logits[:, count:]
    first = functional.binary_cross_entropy_with_logits(answers, targets.to(answers), reduction="none")
    sharpness = negatives.detach() / temperature if temperature > 0 else torch.zeros_like(negatives)
    if counted is None:
        weights = torch.softmax(sharpness, dim=1)
    else:
        lowest = torch.finfo(negatives.dtype).min
        weights = torch.softmax(sharpness.masked_fill(~counted, lowest), dim=1) * counted
    return first + (weights * functional.softplus(negatives)).sum(dim=1, keepdim=True)


def discrepancy(factual: Tensor, counterfactual: Tensor, kind: Discrepancy) -> Tensor:
    """How far the states [P, D] of positives lie from those [P, D] of their substitutes."""
    if kind == "mean":
        return _length(factual.mean(dim=0) - counterfactual.mean(dim=0))
    if kind == "frobenius":
        return _length(factual - counterfactual) / math.sqrt(len(factual))
    return gaussian_divergence(factual, counterfactual)


def gaussian_divergence(factual: Tensor, counterfactual: Tensor) -> Tensor:
    """KL(N_F ‖ N_CF) of diagonal Gaussians fitted to two sets of states; 0 with fewer than two pairs."""
    if len(factual) < 2:
        return factual.sum() * 0
    mean_f, mean_cf = factual.mean(dim=0), counterfactual.mean(dim=0)
    variance_f = factual.var(dim=0, correction=0) + SMALLEST_VARIANCE
    variance_cf = counterfactual.var(dim=0, correction=0) + SMALLEST_VARIANCE
    ratio = variance_f / variance_cf
    return 0.5 * (ratio - 1 - torch.log(ratio) + (mean_f - mean_cf) ** 2 / variance_cf).sum()


def _length(values: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(values)
    return norm
