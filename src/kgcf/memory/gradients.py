"""The loss of one step and its gradient, written out: nothing larger than the scores of a batch is held.

For answers t of questions (h, r), P of them in a batch, the loss is the mean of
  −log softmax_t score(h, r, ·)  −  w log softmax_r score(h, ·, t)  +  λ Σ_d |h_d|³ + |r_d|³ + |t_d|³.
Answers of one question share its row of scores.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from kgcf.memory.complex_model import ComplEx, multiply, relate

_LEAST = 1e-30  # of a probability whose logarithm is shown


@dataclass(frozen=True, eq=False)
class Rows:
    """B questions and their P answers."""

    heads: Tensor = field(repr=False)  # [B]
    relations: Tensor = field(repr=False)  # [B] inverse ones included
    questions: Tensor = field(repr=False)  # [P] the question of every answer, ascending
    tails: Tensor = field(repr=False)  # [P]


@dataclass(frozen=True, eq=False)
class Gradient:
    """Of the mean loss, by every number of the model; and the sums over answers of its terms."""

    entities: Tensor = field(repr=False)  # [M, 2D]
    relations: Tensor = field(repr=False)  # [2R, 2D]
    tail_loss: float
    relation_loss: float


def differentiate(model: ComplEx, rows: Rows, n3: float, relation_weight: float) -> Gradient:
    """The gradient of the loss of some answers."""
    count = len(rows.tails)
    h, r, t = model.entities[rows.heads], model.relations[rows.relations], model.entities[rows.tails]
    counts = torch.bincount(rows.questions, minlength=len(rows.heads)).to(h)  # [B] answers of every question
    q = multiply(h, r)
    slopes, tail_loss = _slopes(q @ model.entities.T, rows.questions, rows.tails, counts, 1 / count)  # [B, M]
    into_entities = slopes.T @ q
    into_q = slopes @ model.entities
    norm = 3 * n3 / count
    into_h = relate(r, into_q) + norm * counts[:, None] * _cubed_slope(h)
    into_r = relate(h, into_q) + norm * counts[:, None] * _cubed_slope(r)
    into_t = norm * _cubed_slope(t)
    into_relations = torch.zeros_like(model.relations)
    relation_loss = 0.0
    if relation_weight > 0:
        heads = h[rows.questions]  # [P, 2D]
        x = relate(heads, t)
        places = torch.arange(count)
        scores = x @ model.relations.T  # [P, 2R]
        weight = relation_weight / count
        slopes, relation_loss = _slopes(
            scores, places, rows.relations[rows.questions], torch.ones(count, dtype=h.dtype), weight
        )
        into_relations += slopes.T @ x
        into_x = slopes @ model.relations
        into_entities.index_add_(0, rows.heads[rows.questions], relate(into_x, t))
        into_t += multiply(heads, into_x)
    into_entities.index_add_(0, rows.heads, into_h)
    into_entities.index_add_(0, rows.tails, into_t)
    into_relations.index_add_(0, rows.relations, into_r)
    return Gradient(into_entities, into_relations, tail_loss, relation_loss)


def _slopes(scores: Tensor, places: Tensor, right: Tensor, counts: Tensor, weight: float) -> tuple[Tensor, float]:
    """weight · ∂/∂scores of Σ −log softmax(scores[place])[right] [B, C], and that sum; `counts` answers a row."""
    slopes = torch.softmax(scores, dim=1)
    loss = -float(slopes[places, right].clamp(min=_LEAST).log().sum())
    slopes *= (weight * counts)[:, None]
    slopes[places, right] -= weight  # no answer of a row occurs twice
    return slopes, loss


def _cubed_slope(x: Tensor) -> Tensor:
    """A third of ∂/∂x of Σ_d |x_d|³ over complex numbers: |x| x."""
    real, imaginary = x.chunk(2, dim=1)
    size = torch.sqrt(real * real + imaginary * imaginary)
    return x * torch.cat([size, size], dim=1)
