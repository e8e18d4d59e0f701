"""What every baseline is: a module that trains itself in epochs, and scores all tails on one observed graph."""

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from kgcf.data.graph import KnowledgeGraph


class EpochKeeper(Protocol):
    """Who counts the epochs: seeds them, hears of their steps, validates, saves, and says whether to go on."""

    @property
    def remaining(self) -> int:
        """How many epochs are still to be trained."""
        ...

    def begin(self) -> None:
        """An epoch begins: torch draws from the stream of (seed, epoch) from here on."""
        ...

    def step(self, total: int, loss: float, questions: int) -> None:
        """One of the epoch's `total` steps is done: its mean loss over so many questions."""
        ...

    def end(self) -> bool:
        """The epoch is done; whether another one follows."""
        ...


class ReachScorer(Protocol):
    """Scores of all tails, and which of them the model can say anything about at all."""

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[B, N] scores and whether an entity is reached; embeddings reach everything."""
        ...

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] scores for B queries (head, relation)."""
        ...


class Baseline(nn.Module, ABC):
    """A model beside KGCF. Its parameters and buffers are all that is saved of it."""

    knows_entities: ClassVar[bool] = False  # whether it has vectors of the train entities, and nothing to say of others
    optimiser: torch.optim.Adam | None = None  # None where training draws no gradients

    @abstractmethod
    def fit(self, epochs: EpochKeeper) -> None:
        """Train for the remaining epochs, telling the keeper of every step and epoch."""

    @abstractmethod
    def scorer(self, graph: KnowledgeGraph, memory: float) -> ReachScorer:
        """The model on one observed graph; `memory` bounds, in bytes, what is held to compute."""

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))

    def refresh(self) -> None:
        """The weights were replaced from outside: forget what was derived from them."""


def prime_adam(optimiser: torch.optim.Adam) -> None:
    """Give a new Adam its zero moments at once, as they would be before the first step."""
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            optimiser.state[parameter] = {
                "step": torch.tensor(0.0),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
