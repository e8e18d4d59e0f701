"""NeuralLP (Yang et al. 2017): at every step attention over relations, and over what the steps before have reached."""

import torch
from torch import Tensor, nn

from kgcf.baselines.paths.operators import Operators, move
from kgcf.baselines.paths.rules import RuleModel, normalised, one_hot
from kgcf.baselines.settings import BaselineSettings, RuleSettings
from kgcf.data.graph import KnowledgeGraph


class NeuralLP(RuleModel):
    """u_t = norm(Σ_k a_t^k M_k Σ_{τ<t} b_t^τ u_τ), u_0 = 1_h; shares = Σ_τ b^τ u_τ over all of them."""

    def make(self, relation_count: int) -> None:
        """An LSTM over the question's relation, repeated, and a last input that means: the end."""
        width = self.settings.hidden
        self.inputs = nn.Embedding(relation_count + 1, width)  # the last one is the end
        self.network = nn.LSTM(width, width)
        self.operator = nn.Linear(width, relation_count)

    def attention(self, relation: int) -> tuple[Tensor, list[Tensor]]:
        """a [T, 2R], and b of every step and of the end: softmax of the products of its state with those so far."""
        length = self.settings.length
        asked = torch.tensor([relation] * length + [self.inputs.num_embeddings - 1])
        states = self.network(self.inputs(asked))[0]  # [T + 1, D]
        over_relations = torch.softmax(self.operator(states[:length]), dim=-1)
        over_steps = [torch.softmax(states[: step + 1] @ states[step], dim=0) for step in range(length + 1)]
        return over_relations, over_steps

    def shares(self, operators: Operators, relation: int, heads: Tensor, hidden: Tensor | None = None) -> Tensor:
        """[N, B] the weighted sum of everything reached."""
        over_relations, over_steps = self.attention(relation)
        reached = [one_hot(heads, operators.graph.entity_count)]
        for step, weights in enumerate(over_relations):
            state = _weighted(over_steps[step], reached)
            reached.append(normalised(move(operators, weights, state, hidden, relation)))
        return _weighted(over_steps[-1], reached)


def _weighted(weights: Tensor, states: list[Tensor]) -> Tensor:
    return torch.stack([weight * state for weight, state in zip(weights, states, strict=True)]).sum(dim=0)


def build(
    settings: BaselineSettings, graph: KnowledgeGraph, batch_size: int, learning_rate: float, seed: int
) -> NeuralLP:
    """With the weights of its seed."""
    assert isinstance(settings, RuleSettings)
    return NeuralLP(settings, graph, batch_size, learning_rate, seed)
