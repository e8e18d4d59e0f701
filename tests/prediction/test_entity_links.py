"""The missing links of an entity are those that completing the whole graph would propose for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgcf.data.source import read
from kgcf.pipeline import fit
from kgcf.prediction.calibration.completed_links import uncalibrated
from kgcf.prediction.completion import complete, plan_completion
from kgcf.prediction.entity_links import missing_links
from kgcf.prediction.observed_graph import with_paths
from kgcf.runs.run import Run
from tests.training.tiny import TINY, dataset, write_folder

SMALL = (*TINY, "objective.negatives=4", "training.threads=1", "training.epochs=1")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder: Path = tmp_path_factory.mktemp("runs")
    return fit(read(write_folder(dataset(), folder / "tiny")), folder / "run", preset="nbfnet", changes=SMALL)


@pytest.mark.parametrize("name", ["e0", "e3", "e17"])
def test_as_in_a_completion_of_everything(run: Run, name: str) -> None:
    observed, calibration = run.observe(), run.completion_calibration()
    everything = complete(observed, plan_completion(observed, None, False), 100_000, calibration=calibration)
    entity, graph = observed.entities.id(name), observed.graph
    own = graph.triples[(graph.triples[:, 0] == entity) | (graph.triples[:, 2] == entity)]
    sides = {(int(h) == entity, int(r)) for h, r, _ in own} | {(int(t) != entity, int(r)) for _, r, t in own}
    seen = {(side, run.data.relations.label(r)) for side, r in sides}
    wanted = [
        a
        for a in everything
        if (a.head == name and (True, a.relation) in seen) or (a.tail == name and (False, a.relation) in seen)
    ]
    found = missing_links(observed, entity, calibration, top=1000)
    assert len(found) == len(wanted) > 3
    assert {(a.head, a.relation, a.tail) for a in found} == {(a.head, a.relation, a.tail) for a in wanted}
    assert [a.probability for a in found] == pytest.approx([a.probability for a in wanted], abs=1e-5)
    assert [a.rank for a in found] == list(range(1, len(found) + 1))
    assert {a.probability_given for a in found} == {a.probability_given for a in wanted}
    best = missing_links(observed, entity, calibration, top=3)
    assert [a.probability for a in best] == pytest.approx([a.probability for a in found[:3]])


def test_somebody_may_say_stop(run: Run) -> None:
    observed = run.observe()
    for patience in (0, 1):  # before ranking, and before scoring what was asked for its head
        calls = iter(range(9))

        def attend(calls: Iterator[int] = calls, patience: int = patience) -> None:
            if next(calls) >= patience:
                raise TimeoutError

        with pytest.raises(TimeoutError):
            missing_links(observed, observed.entities.id("e17"), uncalibrated("seen"), attend=attend)


def test_an_entity_without_facts_has_none(run: Run) -> None:
    observed = run.observe()
    alone = observed.graph.degrees.argmin()
    if observed.graph.degrees[alone] == 0:
        assert missing_links(observed, int(alone), uncalibrated("seen")) == []


def test_two_threads_have_two_workspaces(run: Run) -> None:
    observed = with_paths(run.observe())
    other = observed.for_another_thread()
    assert observed.scorer is not other.scorer
    assert observed.planner is not other.planner
    assert other.graph is observed.graph
