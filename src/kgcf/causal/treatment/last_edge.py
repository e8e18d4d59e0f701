"""The approximate leave-one-out of methods that cannot be refitted per query."""

from dataclasses import dataclass

import numpy as np

from kgcf.causal.relation_graphs import SimpleGraphs
from kgcf.causal.treatment.hidden_edges import HiddenEdges
from kgcf.causal.treatment.labels import LabelChanges, LabelTable
from kgcf.causal.treatment.relabelling import NO_LIMIT, Relabelled
from kgcf.data.graph import KnowledgeGraph


@dataclass(frozen=True, eq=False)
class LastEdge:
    """Labels stay as they were fitted, except that an entity whose last edge is hidden loses its label."""

    graphs: SimpleGraphs

    def relabel(self, hidden: HiddenEdges, limit: int = NO_LIMIT) -> Relabelled:
        """The entities of every query whose edges are all hidden; at most two per edge, so no limit is needed."""
        count = len(self.graphs.entities)
        degrees = np.diff(self.graphs.links.offsets)
        queries = np.repeat(np.arange(len(hidden)), 2 * np.diff(hidden.offsets))
        ends = self.graphs.links.ends[hidden.edges].reshape(-1)  # [H, 2] → [2H]
        keys, hidden_edges = np.unique(queries * np.int64(max(count, 1)) + ends, return_counts=True)
        rows, positions = np.divmod(keys, max(count, 1))
        lost = hidden_edges == degrees[positions]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows[lost], minlength=len(hidden)))]).astype(np.int64)
        entities = self.graphs.entities[positions[lost]]
        changes = LabelChanges(offsets, entities, np.zeros(len(entities), np.int32))
        return Relabelled(changes, np.ones(len(hidden), np.bool_))


def labels_kept(labels: LabelTable, part: KnowledgeGraph) -> LabelTable:
    """Labels of a graph on a part of it: as they were, without the entities that have no edge of the relation left."""
    graphs = SimpleGraphs.build(part)
    members = np.split(graphs.entities, graphs.group_offsets[1:-1])
    kept = [labels.dense(relation)[entities] for relation, entities in enumerate(members)]
    joined = np.concatenate([np.zeros(0, np.int32), *kept])
    return LabelTable(part.entity_count, graphs.groups, graphs.group_offsets, graphs.entities, joined)
