"""KGCF as a scorer: a model bound to one observed graph ranks every entity, in threads."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.machine import memory_bound as bound
from kgcf.machine.devices import worker_threads
from kgcf.model.all_entities import Background, make_background, reads_contexts, score_all
from kgcf.model.kgcf import KGCF
from kgcf.propagation.layers.sparse import budget_for
from kgcf.propagation.plan.contexts import all_contexts
from kgcf.propagation.plan.planner import Planner
from kgcf.propagation.workers import Workers

TreatedAll = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
_QUERIES_AT_ONCE = 4


class GraphScorer:
    """`Scorer` of a model on an observed graph; `treated(heads, relations)` gives T [B, N] where the model reads it."""

    def __init__(
        self,
        model: KGCF,
        graph: KnowledgeGraph,
        treated: TreatedAll | None,
        threads: int | None = None,
        memory: float = bound.DEFAULT,
    ) -> None:
        self._model = model
        self._graph = graph
        self._treated = treated
        self._threads = worker_threads(model.device, threads)
        self._budget = budget_for(model.encoder, memory)
        layers, everybody = model.encoder.settings.layers, model.encoder.settings.everybody
        self._planners = [Planner(graph, layers, everybody=everybody) for _ in range(self._threads)]
        self._contexts = all_contexts(graph) if reads_contexts(model.decoder) else None

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] scores for ranking: reached entities before unreached ones, whose order the context decides."""
        return self.score_with_reach(heads, relations)[0]

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64], reached_first: bool = True
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[B, N] scores, and whether a path reaches the entity: then its score is its logit.

        Without `reached_first` the scores of the unreached are their logits too: they have not been moved.
        """
        shape = (len(heads), self._graph.entity_count)
        scores, reached = np.empty(shape, dtype=np.float32), np.zeros(shape, dtype=bool)
        size = max(1, min(_QUERIES_AT_ONCE, -(-len(heads) // self._threads)))
        background = make_background(self._model.decoder, self._graph.entity_count, self._contexts)

        def work(worker: int, start: int) -> None:
            part = slice(start, start + size)
            planner = self._planners[worker]
            asked = heads[part], relations[part]
            self._score(planner, background, *asked, scores[part], reached[part], reached_first)

        with Workers(self._threads) as workers:
            workers.map(work, range(0, len(heads), size))
        return scores, reached

    def _score(
        self,
        planner: Planner,
        background: Background,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        scores: NDArray[np.float32],
        reached: NDArray[np.bool_],
        reached_first: bool,
    ) -> None:
        treated = None if self._treated is None else self._treated(heads, relations)
        for plan in planner.parts(heads, relations, None, None, self._budget):
            rows = slice(plan.first, plan.first + len(plan))
            known = None if treated is None else treated[rows]
            encoder, decoder = self._model.encoder, self._model.decoder
            found = score_all(encoder, decoder, plan, known, background, reached_first=reached_first)
            scores[rows] = found.cpu().numpy()
            last = plan.layers[-1]
            reached[plan.first + last.queries, last.entities] = True
