"""The default treatment: entities are labelled by their core number."""

from typing import final

from kgcf.causal.relation_graphs import SimpleGraphs
from kgcf.causal.treatment.core_peel import CorePeel, core_numbers
from kgcf.causal.treatment.labels import LabelTable
from kgcf.causal.treatment.settings import TreatmentSettings
from kgcf.causal.treatment.treatment import Labelling, Sources, Treatment
from kgcf.data.graph import KnowledgeGraph


@final
class CoreNumber(Treatment):
    """c_r(v) is the core number of v in A_r: 1, 2, …; an entity without an edge in A_r has none."""

    @classmethod
    def label(cls, sources: Sources, settings: TreatmentSettings) -> Labelling:
        """The core numbers of every A_r."""
        return _label_by_core(sources.graph, collapsed=False)

    def make_rule(self) -> CorePeel:
        """Exact: a local peel."""
        return CorePeel.of(SimpleGraphs.build(self.graph), self.labels.labels)


@final
class CollapsedCore(Treatment):
    """c(v) is the core number of v in the graph that forgets relations: the homogeneous-graph ablation.

    The label is the same under every relation. Hiding (h, r, t) takes the edge {h, t} away only if no other
    triple links the pair.
    """

    @classmethod
    def label(cls, sources: Sources, settings: TreatmentSettings) -> Labelling:
        """The core numbers of the collapsed graph."""
        return _label_by_core(sources.graph, collapsed=True)

    def make_rule(self) -> CorePeel:
        """Exact: a local peel."""
        return CorePeel.of(SimpleGraphs.build(self.graph, collapsed=True), self.labels.labels)


def _label_by_core(graph: KnowledgeGraph, *, collapsed: bool) -> Labelling:
    graphs = SimpleGraphs.build(graph, collapsed=collapsed)
    cores = core_numbers(graphs)
    table = LabelTable(graph.entity_count, graphs.groups, graphs.group_offsets, graphs.entities, cores)
    return Labelling(table, CorePeel.of(graphs, cores))
