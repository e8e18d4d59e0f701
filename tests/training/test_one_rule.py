"""Matching and training take a treatment on the same graph: L_CF turns T to the arm of the substitute, never away."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from kgcf.causal.counterfactual import CounterfactualTable
from kgcf.causal.treatment import Treatment, TreatmentSettings, assign_treatment
from kgcf.config import Settings, configure
from kgcf.data.dataset import Dataset, transductive
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove
from kgcf.data.vocabulary import Vocabulary
from kgcf.model.kgcf import KGCF, Evidence
from kgcf.runs.folder import RunFolder
from kgcf.runs.stages import substitutes_stage, treatment_stage
from kgcf.training.batches import Batch, stream, triples_batch
from kgcf.training.step import GradientComputer
from kgcf.training.substitutes import Substitutes
from tests.training.tiny import model, step_context

SMALL = ("space.dimension=4", "space.walks=2", "space.length=6", "space.window=2", "objective.alpha=0.5")


def answered_back(seed: int) -> Dataset:
    """Few entities with links in both directions: a pair without its triple often keeps its edge."""
    rng = np.random.default_rng(seed)
    triples = np.stack([rng.integers(0, 14, 50), rng.integers(0, 2, 50), rng.integers(0, 14, 50)], axis=1)
    triples = np.concatenate([triples, triples[:15, ::-1]])
    parts = (triples.astype(np.int32), np.zeros((0, 3), np.int32), np.zeros((0, 3), np.int32))
    return transductive("back", Vocabulary.numbered(14), Vocabulary(["r", "s"]), parts)


def make(data: Dataset, remove: Remove, folder: Path) -> tuple[Treatment, Substitutes, CounterfactualTable]:
    """As the pipeline makes them, and the table that it stores."""
    settings = chosen(remove)
    treatment = treatment_stage(RunFolder(folder), data, settings)
    found = substitutes_stage(RunFolder(folder), data, settings, treatment)
    assert treatment is not None
    assert found is not None
    return treatment, found, CounterfactualTable.from_parquet(folder / "counterfactuals.parquet")


def chosen(remove: Remove) -> Settings:
    return configure("default", None, None, [*SMALL, f"training.remove={remove}"])


def without_links(graph: KnowledgeGraph, h: int, r: int, t: int, remove: Remove) -> KnowledgeGraph:
    """The graph that a question about one pair sees, rebuilt."""
    gone = [[h, r, t]]
    if remove == "pair":
        gone = [row for row in graph.triples.tolist() if {row[0], row[2]} == {h, t}]
    return graph.without([row for row in gone if graph.contains([row])[0]])


class Listening(KGCF):
    """Remembers the treatments that it was asked to decode with."""

    heard: list[NDArray[np.bool_]]

    def decode(self, evidence: Evidence, treated: torch.Tensor | None) -> torch.Tensor:
        assert treated is not None
        self.heard.append(treated.numpy())
        return super().decode(evidence, treated)


def hear(
    data: Dataset, treatment: Treatment, found: Substitutes, remove: Remove
) -> Iterator[tuple[Batch, NDArray[np.bool_], NDArray[np.bool_]]]:
    """T^F and T^CF of all candidates that the losses of every train triple use, asked from either end."""
    net = model(2, treatment=True)
    net.__class__ = Listening
    assert isinstance(net, Listening)
    computer = GradientComputer(step_context(net, data.graph, treatment, found, remove, alpha=0.5), 1)
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(data.graph))
        net.heard = []
        batch = triples_batch(data.graph, order, 6, remove, stream(seed, 0, 0))
        computer.compute(batch)
        factual, counterfactual = net.heard
        yield batch, factual, counterfactual


@pytest.mark.parametrize("remove", ["triple", "pair"])
def test_the_counterfactual_treatment_is_that_of_the_substitute(remove: Remove, tmp_path: Path) -> None:
    kept = 0
    for graph_seed in range(3):
        data = answered_back(graph_seed)
        graph = data.graph
        treatment, found, table = make(data, remove, tmp_path / str(graph_seed))
        assert table.remove == remove
        of_substitutes = []
        for (_, r, _), (a, b) in zip(graph.triples.tolist(), table.substitutes.tolist(), strict=True):
            seen = without_links(graph, a, r, b, remove) if a >= 0 else graph
            of_substitutes.append(bool(assign_treatment(seen, TreatmentSettings()).treated_triples([[a, r, b]])[0]))
        assert found.matched.any()
        for batch, factual, counterfactual in hear(data, treatment, found, remove):
            for row, triple in enumerate(batch.asked.triples[:, 0].tolist()):
                turned = bool(factual[row, 0] != counterfactual[row, 0])
                assert ((factual[row] != counterfactual[row]) == turned).all()
                if found.matched[triple]:
                    assert counterfactual[row, 0] == of_substitutes[triple], (remove, graph.triples[triple])
                    kept += not turned
                else:
                    assert not turned
    assert kept > 0 if remove == "pair" else kept == 0, "links of negatives may change T^F, and only under `pair`"


@pytest.mark.parametrize("remove", ["triple", "pair"])
def test_the_table_follows_the_rule(remove: Remove, tmp_path: Path) -> None:
    """The table's T^F is that of the graph without the triple, or without the pair; the two differ here."""
    data = answered_back(0)
    graph = data.graph
    _, _, table = make(data, remove, tmp_path)
    expected: list[bool] = []
    other: list[bool] = []
    for h, r, t in graph.triples.tolist():
        for rule, values in (("triple", other), ("pair", expected)) if remove == "pair" else (("triple", expected),):
            seen = without_links(graph, h, r, t, "pair" if rule == "pair" else "triple")
            values.append(bool(assign_treatment(seen, TreatmentSettings()).treated_triples([[h, r, t]])[0]))
    assert table.factual_treatments.tolist() == expected
    assert expected != other


def test_what_is_not_turned_counts_as_it_is() -> None:
    """A query whose T^F is already its substitute's has A^F for a target, like an unmatched one."""
    graph = answered_back(0).graph
    count = len(graph)
    treated = assign_treatment(graph, TreatmentSettings()).treated_triples(graph.triples, leave_one_out=True)
    nowhere = np.zeros(count, np.int64)
    found = Substitutes(graph, nowhere, nowhere, np.ones(count, np.bool_), treated, np.zeros(count, np.bool_))
    treatment, net = assign_treatment(graph, TreatmentSettings()), model(2, treatment=True)
    batch = triples_batch(graph, np.arange(count), 6, "triple", stream(0, 0, 0))
    sums, _ = GradientComputer(step_context(net, graph, treatment, found, alpha=0.5), 1).compute(batch)
    assert sums.terms["counterfactual"] == sums.terms["factual"]


def test_a_table_made_by_another_rule_is_made_again(tmp_path: Path) -> None:
    data = answered_back(1)
    said: list[str] = []
    make(data, "triple", tmp_path)
    folder, settings = RunFolder(tmp_path), chosen("pair")
    found = substitutes_stage(folder, data, settings, treatment_stage(folder, data, settings), said.append)
    table = CounterfactualTable.from_parquet(tmp_path / "counterfactuals.parquet")
    assert table.remove == "pair"
    assert found is not None
    assert (found.treatments == table.counterfactual_treatments).all()
    assert said[0] == "counterfactuals.parquet was made by other rules; matching again"
