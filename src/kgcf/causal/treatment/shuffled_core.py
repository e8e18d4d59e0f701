"""A control: core numbers dealt out anew at random, so that a treatment has its shares but none of its meaning."""

from typing import final

import numpy as np

from kgcf.causal.relation_graphs import SimpleGraphs
from kgcf.causal.treatment.core_peel import core_numbers
from kgcf.causal.treatment.labels import LabelTable
from kgcf.causal.treatment.last_edge import LastEdge, labels_kept
from kgcf.causal.treatment.settings import TreatmentSettings
from kgcf.causal.treatment.treatment import Labelling, Sources, Treatment
from kgcf.data.graph import KnowledgeGraph


@final
class ShuffledCore(Treatment):
    """c_r(v) is the core number in A_r of an entity drawn at random without replacement, seeded per relation.

    The same entities have labels as with core_number, and as many have each. Leave-one-out takes the label from an
    entity whose last edge is hidden; the others' labels do not depend on any edge.
    """

    @classmethod
    def label(cls, sources: Sources, settings: TreatmentSettings) -> Labelling:
        """The core numbers of every A_r in random order."""
        graphs = SimpleGraphs.build(sources.graph)
        labels = core_numbers(graphs).copy()
        bounds = graphs.group_offsets
        for group in range(len(bounds) - 1):
            generator = np.random.default_rng([settings.seed, group])
            labels[bounds[group] : bounds[group + 1]] = generator.permutation(labels[bounds[group] : bounds[group + 1]])
        table = LabelTable(sources.graph.entity_count, graphs.groups, bounds, graphs.entities, labels)
        return Labelling(table, LastEdge(graphs))

    def make_rule(self) -> LastEdge:
        """An entity without an edge loses its label."""
        return LastEdge(SimpleGraphs.build(self.graph))

    def labels_on(self, part: KnowledgeGraph) -> LabelTable:
        """The labels as they were drawn, without the entities that have no edge left."""
        return labels_kept(self.labels, part)
