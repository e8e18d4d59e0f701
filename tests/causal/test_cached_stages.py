"""The causal stages have one home: what a command computed, a run takes; what a run keeps, an answer uses."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_array_equal

import kgcf
from kgcf.causal import cached_stages as causal_stages
from kgcf.causal.cache import Cache, user_cache
from kgcf.causal.cached_stages import CausalStages
from kgcf.causal.treatment import Treatment, TreatmentSettings, assign_treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.pipeline import Execution
from kgcf.prediction.observed_graph import with_paths
from kgcf.runs.run import Run
from tests.training.tiny import dataset

QUICK = (
    "encoder.layers=2",
    "encoder.width=8",
    "decoder.hidden=8",
    "objective.negatives=4",
    "training.epochs=1",
    "training.batch_size=32",
    "training.remove=triple",
    "training.threads=1",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return kgcf.fit(dataset(), tmp_path_factory.mktemp("stages") / "run", changes=QUICK)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each stage computes."""
    calls = dict.fromkeys(("assign_treatment", "embed_entities", "match_pairs"), 0)

    def counting(name: str) -> Callable[..., Any]:
        function = getattr(causal_stages, name)

        def called(*arguments: Any, **named: Any) -> Any:
            calls[name] += 1
            return function(*arguments, **named)

        return called

    for name in calls:
        monkeypatch.setattr(causal_stages, name, counting(name))
    return calls


def test_training_takes_what_was_computed_before(tmp_path: Path, counted: dict[str, int]) -> None:
    data, settings = dataset(), kgcf.config.configure("default", None, None, list(QUICK))
    stages = CausalStages(user_cache())
    treatment = stages.treatment(data.graph, settings.treatment)
    stages.table(stages.space(data.graph, settings.space), treatment, settings.matching.candidates, True, "triple")
    heard: list[str] = []
    kgcf.fit(data, tmp_path / "run", changes=QUICK, execution=Execution(say=heard.append))
    assert (counted["embed_entities"], counted["match_pairs"]) == (1, 1)
    assert [line for line in heard if "cache" in line] == [
        "entity space: taken from the cache",
        "counterfactuals: taken from the cache",
    ]
    assert {"space.safetensors", "counterfactuals.parquet"} <= {path.name for path in (tmp_path / "run").iterdir()}


def test_answers_use_the_treatment_that_the_run_keeps(run: Run, counted: dict[str, int]) -> None:
    opened = kgcf.open(run.folder.path)
    bound = with_paths(opened.observe(observed="train"))
    assert counted["assign_treatment"] == 0
    assert bound.treatment is not None
    fresh = assign_treatment(bound.graph, opened.settings.treatment)
    assert bound.treatment.fingerprint == fresh.fingerprint


def test_everything_observed_is_labelled_once(run: Run, counted: dict[str, int]) -> None:
    found = [with_paths(kgcf.open(run.folder.path).observe()).treatment for _ in range(2)]
    assert counted["assign_treatment"] == 1
    graph = run.data.test.known
    fresh = assign_treatment(graph, run.settings.treatment)
    for treatment in found:
        assert treatment is not None
        assert treatment.fingerprint == fresh.fingerprint
        asked = partial(Treatment.treated_triples, triples=graph.triples, leave_one_out=True, remove="pair")
        assert_array_equal(asked(treatment), asked(fresh))


def test_of_a_graph_that_is_not_the_runs_nothing_is_kept(run: Run, counted: dict[str, int]) -> None:
    for _ in range(2):
        run.observe([("a", run.data.relations.label(0), "b"), ("b", run.data.relations.label(0), "c")])
    assert counted["assign_treatment"] == 2
    folder = user_cache().folder
    assert folder is not None
    assert not folder.exists()


@pytest.mark.parametrize(
    "change", [{"method": "louvain"}, {"method": "collapsed_core"}, {"method": "core_component", "k": 1}]
)
def test_labels_are_keyed_by_graph_and_settings(change: dict[str, Any], tmp_path: Path) -> None:
    stages, graph = CausalStages(Cache(tmp_path)), dataset().graph
    smaller = graph.without(graph.triples[:5])
    plain = TreatmentSettings()
    other = TreatmentSettings(**change)
    for _ in range(2):
        for of, settings in ((graph, plain), (graph, other), (smaller, plain)):
            found = stages.treatment(of, settings, store_changes=False)
            assert found.fingerprint == assign_treatment(of, settings).fingerprint
    assert len(list(tmp_path.iterdir())) == 3


def test_labels_of_an_empty_graph(tmp_path: Path) -> None:
    graph = KnowledgeGraph.build([], 2, 1)
    for _ in range(2):
        found = CausalStages(Cache(tmp_path)).treatment(graph, TreatmentSettings(), store_changes=False)
        assert not found.treated([0], [0]).any()
