"""The floor: answer with the entities that stand most often on the asked side of the relation."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from kgcf.data.graph import KnowledgeGraph


class FrequencyScorer:
    """score(h, r, t) = number of triples (·, r, t) in the observed graph; the head plays no role."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        shape = (2 * graph.relation_count, graph.entity_count)
        ones = np.ones(graph.edge_count, dtype=np.float32)
        self._counts = csr_matrix((ones, (graph.edge_relations, graph.edge_tails)), shape=shape)

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] how often every entity is a tail of the relation."""
        scores: NDArray[np.float32] = self._counts[relations].toarray()
        return scores
