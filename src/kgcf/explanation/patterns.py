"""Relation patterns: the relations of a path without its entities, applied to a whole graph and counted exactly."""

from dataclasses import dataclass

import numpy as np

from kgcf.data.graph import KnowledgeGraph
from kgcf.explanation.paths import Path
from kgcf.explanation.pattern_kernels import apply_pattern

LIMIT = 200_000_000  # steps along edges, some seconds; then the heads that are left are not asked
Pattern = tuple[int, ...]  # relations as a path travels them; r ≥ R is the inverse of r − R


@dataclass(frozen=True)
class Applied:
    """What a pattern says when it is applied by itself: (x, z) for every path of the pattern from x to z."""

    pairs: int
    true: int  # of these pairs, linked by the relation in the graph
    exact: bool  # False: there were too many paths, and a random part of the heads was asked

    @property
    def confidence(self) -> float:
        """The share of the pairs that the relation links."""
        return self.true / self.pairs if self.pairs else 0.0


def pattern_of(path: Path) -> Pattern:
    """The relations of a path, in the direction of travel."""
    return tuple(edge.relation for edge in path.edges)


def count_pairs(
    graph: KnowledgeGraph, pattern: Pattern, relation: int, generator: np.random.Generator, limit: int = LIMIT
) -> Applied:
    """Apply a pattern to a graph; a path visits no entity twice, as in explanations.

    So no pair is linked by the very triple that is to be predicted, unless the pattern is that relation itself.
    """
    begin, end = graph.tail_ranges(np.arange(graph.entity_count), np.full(graph.entity_count, pattern[0]))
    heads = generator.permutation(np.flatnonzero(end > begin))
    pairs, true, done = apply_pattern(
        graph.offsets,
        graph.edge_relations,
        graph.edge_tails,
        np.array(pattern, dtype=np.int64),
        relation,
        heads,
        limit,
    )
    return Applied(int(pairs), int(true), done == len(heads))
