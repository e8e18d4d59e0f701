"""The treatment of a part of a graph is what hiding the other triples makes of the treatment of the whole."""

from pathlib import Path

import numpy as np
import pytest

from kgcf.causal.treatment import TreatmentSettings, assign_to_part, assign_treatment
from kgcf.data.vocabulary import Vocabulary
from tests.causal.treatment.oracles import EXACT, clustered_graph, hide

LOUVAIN = TreatmentSettings(method="louvain")


@pytest.mark.parametrize("settings", [*EXACT[:3], LOUVAIN], ids=lambda s: s.method)
@pytest.mark.parametrize("seed", range(3))
def test_a_part_is_labelled_as_hidden_triples_leave_it(settings: TreatmentSettings, seed: int) -> None:
    generator = np.random.default_rng(seed)
    graph = clustered_graph(generator)
    treatment = assign_treatment(graph, settings, threads=1)
    gone = np.sort(generator.choice(len(graph), size=len(graph) // 3, replace=False))
    part = assign_to_part(treatment, graph.without(graph.triples[gone]))
    heads = np.repeat(np.arange(graph.entity_count), graph.relation_count)
    relations = np.tile(np.arange(graph.relation_count), graph.entity_count)
    hidden = hide([gone.tolist()] * len(heads))
    expected = treatment.treated(heads, relations, None, hidden)
    np.testing.assert_array_equal(part.treated(heads, relations), expected)
    assert (expected != treatment.treated(heads, relations)).any()


def test_labels_of_a_file_stay(tmp_path: Path) -> None:
    graph = clustered_graph(np.random.default_rng(0))
    path = tmp_path / "labels.tsv"
    path.write_text("".join(f"e{i}\t{i % 3}\n" for i in range(graph.entity_count)))
    entities = Vocabulary([f"e{i}" for i in range(graph.entity_count)])
    relations = Vocabulary.numbered(graph.relation_count)
    settings = TreatmentSettings(method="file", path=path)
    treatment = assign_treatment(graph, settings, entities=entities, relations=relations)
    path.unlink()
    part = assign_to_part(treatment, graph.without(graph.triples[::2]))
    np.testing.assert_array_equal(part.treated([0, 1], [0, 0]), treatment.treated([0, 1], [0, 0]))
