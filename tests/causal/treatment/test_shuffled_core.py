"""The control treatment: the labels of core_number, dealt out at random; nothing else differs."""

import numpy as np

from kgcf.causal.treatment import TreatmentSettings, assign_to_part, assign_treatment
from tests.causal.treatment.oracles import clustered_graph, hide

SHUFFLED = TreatmentSettings(method="shuffled_core")


def test_the_same_labels_stand_at_other_entities() -> None:
    graph = clustered_graph(np.random.default_rng(3))
    true, dealt = assign_treatment(graph), assign_treatment(graph, SHUFFLED)
    moved = False
    for relation in range(graph.relation_count):
        (where, labels), (also, drawn) = true.labels.of(relation), dealt.labels.of(relation)
        np.testing.assert_array_equal(where, also)
        np.testing.assert_array_equal(np.sort(labels), np.sort(drawn))
        moved |= not np.array_equal(labels, drawn)
    assert moved


def test_the_seed_decides_and_threads_do_not() -> None:
    graph = clustered_graph(np.random.default_rng(3))
    first, second, other = (
        assign_treatment(graph, TreatmentSettings(method="shuffled_core", seed=seed), threads=threads).fingerprint
        for seed, threads in ((0, 1), (0, 3), (1, 1))
    )
    assert first == second
    assert first != other


def test_an_entity_without_an_edge_left_loses_its_label_and_no_other_changes() -> None:
    graph = clustered_graph(np.random.default_rng(1))
    treatment = assign_treatment(graph, SHUFFLED, threads=1)
    relation = int(graph.triples[0, 1])
    rows = np.flatnonzero(graph.triples[:, 1] == relation)[::2]
    part = graph.without(graph.triples[rows])
    heads = np.arange(graph.entity_count)
    hidden = hide([rows.tolist()] * len(heads))
    seen = treatment.treated(heads, np.full(len(heads), relation), None, hidden)
    np.testing.assert_array_equal(assign_to_part(treatment, part).treated(heads, np.full(len(heads), relation)), seen)
    left = np.unique(part.triples[part.triples[:, 1] == relation][:, [0, 2]])
    labels = treatment.labels.dense(relation)
    for head in heads.tolist():
        both = np.isin(heads, left) & (head in left) & (labels == labels[head])
        np.testing.assert_array_equal(seen[head], both)
