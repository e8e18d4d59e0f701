"""What NeuralLP and DRUM share: questions of one relation at a time, −log of the answer's share, all tails."""

from abc import abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgcf.baselines.contract import Baseline, EpochKeeper, ReachScorer, prime_adam
from kgcf.baselines.paths.operators import Operators
from kgcf.baselines.settings import RuleSettings
from kgcf.data.graph import KnowledgeGraph

LEAST = 1e-20  # share of an entity that no rule reaches
_BYTES = 64  # per entity and question, for all steps of a rule


class RuleModel(Baseline):
    """Soft rules: a recurrent network reads the relation and says how much every relation counts at every step."""

    def __init__(
        self, settings: RuleSettings, graph: KnowledgeGraph, batch_size: int, learning_rate: float, seed: int
    ) -> None:
        super().__init__()
        self.settings = settings
        self._graph, self._batch_size = graph, batch_size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.make(2 * graph.relation_count)
        self.optimiser = torch.optim.Adam(self.parameters(), lr=learning_rate)
        prime_adam(self.optimiser)

    @abstractmethod
    def make(self, relation_count: int) -> None:
        """Make the layers."""

    @abstractmethod
    def shares(self, operators: Operators, relation: int, heads: Tensor, hidden: Tensor | None = None) -> Tensor:
        """[N, B] how much of the evidence about (head, relation, ?) says each entity; a column sums to 1 or to 0."""

    def fit(self, epochs: EpochKeeper) -> None:
        """Steps of one relation's triples each, in random order; a triple does not see itself."""
        operators = Operators(self._graph)
        going = epochs.remaining > 0
        while going:
            epochs.begin()
            batches = self._batches()
            self.train()
            for relation, heads, tails in batches:
                loss = self._step(operators, relation, heads, tails)
                epochs.step(len(batches), loss, len(heads))
            going = epochs.end()

    def _batches(self) -> list[tuple[int, Tensor, Tensor]]:
        """(relation, heads, tails) of every step: both directions of every triple, drawn with torch's stream."""
        graph = self._graph
        sources = np.repeat(np.arange(graph.entity_count), np.diff(graph.offsets))
        edges = np.stack([sources, graph.edge_relations, graph.edge_tails])
        edges = edges[:, torch.randperm(edges.shape[1]).numpy()]
        edges = edges[:, np.argsort(edges[1], kind="stable")]
        starts = np.searchsorted(edges[1], np.arange(2 * graph.relation_count + 1))
        found = []
        for relation in range(2 * graph.relation_count):
            for first in range(starts[relation], starts[relation + 1], self._batch_size):
                part = edges[:, first : min(first + self._batch_size, starts[relation + 1])]
                found.append((relation, torch.from_numpy(part[0]), torch.from_numpy(part[2]).long()))
        return [found[place] for place in torch.randperm(len(found)).tolist()]

    def _step(self, operators: Operators, relation: int, heads: Tensor, tails: Tensor) -> float:
        """One move of Adam along the gradient of the mean −log share of the answers."""
        assert self.optimiser is not None
        shares = self.shares(operators, relation, heads, torch.stack([heads, tails]))
        loss = -torch.log(shares[tails, torch.arange(len(tails))].clamp(min=LEAST)).mean()
        self.optimiser.zero_grad()
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_value_(self.parameters(), self.settings.gradient_limit)
            self.optimiser.step()
        return float(loss.detach())

    def scorer(self, graph: KnowledgeGraph, memory: float) -> ReachScorer:
        """The rules on the observed graph."""
        return RuleScorer(self, graph, memory)


class RuleScorer:
    """log share of every entity, relation by relation."""

    def __init__(self, model: RuleModel, graph: KnowledgeGraph, memory: float) -> None:
        self._model, self._operators = model, Operators(graph)
        self._rows = max(1, int(memory / (_BYTES * max(graph.entity_count, 1) * model.settings.length)))

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] log shares."""
        return self.score_with_reach(heads, relations)[0]

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[B, N] log shares, and whether a rule reaches the entity at all."""
        shares = np.empty((len(heads), self._operators.graph.entity_count), dtype=np.float32)
        self._model.eval()
        with torch.no_grad():
            for relation in np.unique(relations).tolist():
                rows = np.flatnonzero(relations == relation)
                for first in range(0, len(rows), self._rows):
                    part = rows[first : first + self._rows]
                    found = self._model.shares(self._operators, relation, torch.from_numpy(heads[part]))
                    shares[part] = found.T.numpy()
        return np.log(np.maximum(shares, LEAST), dtype=np.float32), shares > 0


def one_hot(heads: Tensor, entity_count: int) -> Tensor:
    """[N, B] a column for every question, 1 at its head."""
    state = torch.zeros(entity_count, len(heads))
    state[heads, torch.arange(len(heads))] = 1.0
    return state


def normalised(state: Tensor) -> Tensor:
    """Columns that sum to 1; one of zeros stays."""
    return state / state.sum(dim=0, keepdim=True).clamp(min=LEAST)
