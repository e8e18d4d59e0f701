"""DRUM (Sadeghian et al. 2019): a sum of chains, each with a network of its own; a step may stay where it is."""

import torch
from torch import Tensor, nn

from kgcf.baselines.paths.operators import Operators, move
from kgcf.baselines.paths.rules import RuleModel, normalised, one_hot
from kgcf.baselines.settings import BaselineSettings, DrumSettings
from kgcf.data.graph import KnowledgeGraph


class Drum(RuleModel):
    """shares = norm(Σ_l 1_h Π_t (Σ_k a_{l,t,k} M_k + a_{l,t,0} I))."""

    def make(self, relation_count: int) -> None:
        """For every chain an LSTM that reads the question's relation in both directions."""
        assert isinstance(self.settings, DrumSettings)
        width = self.settings.hidden
        self.inputs = nn.Embedding(relation_count, width)
        self.networks = nn.ModuleList(nn.LSTM(width, width, bidirectional=True) for _ in range(self.settings.rank))
        self.operator = nn.Linear(2 * width, relation_count + 1)  # the last one stays where it is

    def attention(self, relation: int) -> Tensor:
        """a [L, T, 2R + 1]."""
        asked = self.inputs(torch.tensor([relation] * self.settings.length))
        states = torch.stack([network(asked)[0] for network in self.networks])  # [L, T, 2D]
        return torch.softmax(self.operator(states), dim=-1)

    def shares(self, operators: Operators, relation: int, heads: Tensor, hidden: Tensor | None = None) -> Tensor:
        """[N, B] the sum of what the chains reach, without the head's own share of having stayed."""
        start = one_hot(heads, operators.graph.entity_count)
        total = torch.zeros_like(start)
        for chain in self.attention(relation):
            state = start
            stayed = torch.ones(())
            for weights in chain:
                state = move(operators, weights[:-1], state, hidden, relation) + weights[-1] * state
                stayed = stayed * weights[-1]
            total = total + state - stayed * start
        return normalised(total)


def build(settings: BaselineSettings, graph: KnowledgeGraph, batch_size: int, learning_rate: float, seed: int) -> Drum:
    """With the weights of its seed."""
    assert isinstance(settings, DrumSettings)
    return Drum(settings, graph, batch_size, learning_rate, seed)
