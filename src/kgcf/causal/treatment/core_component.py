"""The treatment that compares connected components of the k-core."""

from typing import final

from kgcf.causal.relation_graphs import SimpleGraphs
from kgcf.causal.treatment.component_split import ComponentSplit
from kgcf.causal.treatment.components import component_labels
from kgcf.causal.treatment.core_peel import core_numbers
from kgcf.causal.treatment.labels import LabelTable
from kgcf.causal.treatment.settings import TreatmentSettings
from kgcf.causal.treatment.treatment import Labelling, Sources, Treatment
from kgcf.data.graph import KnowledgeGraph


@final
class CoreComponent(Treatment):
    """c_r(v) is the connected component of v in the k-core of A_r; an entity outside the k-core has no label."""

    @classmethod
    def label(cls, sources: Sources, settings: TreatmentSettings) -> Labelling:
        """The components of the k-core of every A_r, numbered within their relation."""
        inner = _k_cores(sources.graph, settings.k)
        labels = component_labels(inner)
        table = LabelTable(sources.graph.entity_count, inner.groups, inner.group_offsets, inner.entities, labels)
        return Labelling(table, ComponentSplit.of(inner, labels, settings.k))

    def make_rule(self) -> ComponentSplit:
        """Exact: peel the k-core, then look where it falls apart."""
        return ComponentSplit.of(_k_cores(self.graph, self.settings.k), self.labels.labels, self.settings.k)


def _k_cores(graph: KnowledgeGraph, k: int) -> SimpleGraphs:
    graphs = SimpleGraphs.build(graph)
    return graphs.induced(core_numbers(graphs) >= k)
