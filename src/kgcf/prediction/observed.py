"""A model at work on one observed graph: scores of all entities, and exact logits of chosen candidates."""

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hidden import HiddenTriples
from kgcf.data.vocabulary import Vocabulary
from kgcf.model import KGCF
from kgcf.propagation.plan import Planner
from kgcf.ranking import GraphScorer
from kgcf.treatment import Treatment


class ObservedGraph:
    """Binds a model to a graph and its treatment; everything that answers questions goes through here."""

    def __init__(
        self,
        model: KGCF,
        graph: KnowledgeGraph,
        entities: Vocabulary,
        relations: Vocabulary,
        treatment: Treatment | None,
        threads: int | None = None,
    ) -> None:
        self.model = model
        self.graph = graph
        self.entities = entities
        self.relations = relations
        self.treatment = treatment
        self._threads = threads

    @cached_property
    def scorer(self) -> GraphScorer:
        """Ranks every entity."""
        treated = None if self.treatment is None else self.treatment.treated
        return GraphScorer(self.model, self.graph, treated, self._threads)

    @cached_property
    def planner(self) -> Planner:
        """Plans questions about chosen candidates."""
        return Planner(self.graph, self.model.encoder.settings.layers)

    def logits(
        self,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        candidates: NDArray[np.int64],
        hidden: HiddenTriples | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """[B, K] logits of candidates, and whether a path reaches them; `hidden` triples are not seen."""
        plan = self.planner.plan(heads, relations, candidates, hidden)
        treated = None
        if self.treatment is not None:
            treated = torch.from_numpy(self.treatment.treated(heads, relations, candidates, hidden))
        with torch.no_grad():
            evidence = self.model.encode(plan)
            logits = self.model.decode(evidence, treated)
        return logits.double().numpy(), evidence.reached.numpy()
