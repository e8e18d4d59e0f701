"""ComplEx: every entity and every relation, inverse ones apart, is a vector of D complex numbers."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ComplEx:
    """score(h, r, t) = Re Σ_d h_d · r_d · conj(t_d); real parts stand before imaginary ones.

    M is the number of entities that train has an edge of; the memory knows no others.
    """

    entities: Tensor = field(repr=False)  # [M, 2D]
    relations: Tensor = field(repr=False)  # [2R, 2D]

    @classmethod
    def draw(cls, entity_count: int, relation_count: int, rank: int, init: float, seed: int) -> "ComplEx":
        """Normal numbers of deviation `init`; inverse relations have vectors of their own."""
        generator = torch.Generator().manual_seed(seed)
        sizes = ((entity_count, 2 * rank), (2 * relation_count, 2 * rank))
        return cls(*(torch.randn(size, generator=generator).mul_(init) for size in sizes))

    def copy(self) -> "ComplEx":
        """The same numbers in tensors of their own."""
        return ComplEx(self.entities.clone(), self.relations.clone())

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """[B, M] scores of every entity as the tail."""
        return multiply(self.entities[heads], self.relations[relations]) @ self.entities.T

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The numbers by name, to be saved."""
        return {"entities": self.entities.numpy(), "relations": self.relations.numpy()}


def multiply(first: Tensor, second: Tensor) -> Tensor:
    """[B, 2D] the product a · b of complex vectors; Re Σ (h · r) conj(t) is its dot product with t."""
    a, b = first.chunk(2, dim=1)
    c, d = second.chunk(2, dim=1)
    return torch.cat([a * c - b * d, a * d + b * c], dim=1)


def relate(first: Tensor, second: Tensor) -> Tensor:
    """[B, 2D] the product conj(a) · b; Re Σ h r conj(t) is the dot product of r with conj(h) · t."""
    a, b = first.chunk(2, dim=1)
    c, d = second.chunk(2, dim=1)
    return torch.cat([a * c + b * d, a * d - b * c], dim=1)
