"""Runs in nbfnet semantics: trained, stopped, resumed, opened, asked; and what contradicts them is refused."""

from pathlib import Path

import numpy as np
import pytest
import torch

import kgcf
from kgcf.config import configure
from kgcf.errors import SettingsError
from kgcf.model.dense_scores import score_densely
from kgcf.pipeline import Execution, resume
from kgcf.prediction.observed_graph import with_paths
from kgcf.propagation.dense.propagation import DenseEdges, propagate_densely
from kgcf.runs.run import Run
from kgcf.runs.settling import check_data
from tests.baselines.test_runs import Interrupting
from tests.training.tiny import TINY, dataset

NBFNET = (*TINY, "encoder.semantics=nbfnet")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Trained once, with all of the counterfactual losses."""
    folder = tmp_path_factory.mktemp("nbfnet") / "run"
    return kgcf.fit(dataset(), folder, preset="paper", changes=NBFNET, seed=3, time="none")


def test_a_run_opens_and_ranks_as_the_dense_reference_says(run: Run) -> None:
    opened, data = Run.open(run.folder.path), run.data
    heads, relations = data.test.queries[:, 0].astype(np.int64), data.test.queries[:, 1].astype(np.int64)
    bound, model = with_paths(opened.bind_task(data.test)), opened.model
    edges = DenseEdges.build(data.graph, model.encoder.query.weight)
    assert bound.treatment is not None
    treated = torch.from_numpy(bound.treatment.treated(heads, relations))
    with torch.no_grad():
        asked = torch.from_numpy(heads), torch.from_numpy(relations)
        states = propagate_densely(model.encoder, edges, *asked, semantics="nbfnet")
        expected = score_densely(model.decoder, states, treated).numpy()
    np.testing.assert_allclose(bound.scorer.score_tails(heads, relations), expected, rtol=1e-4, atol=1e-5)
    everyone = np.broadcast_to(np.arange(len(data.entities)), expected.shape).copy()
    np.testing.assert_allclose(bound.logits(heads, relations, everyone)[0], expected, rtol=1e-4, atol=1e-5)
    assert opened.evaluate("test")["mrr"] > 0
    assert len(opened.predict(data.entities.label(int(heads[0])), "grandparent", None)) > 0


def test_a_stopped_run_goes_on_to_the_same_weights(run: Run, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        kgcf.fit(
            dataset(), tmp_path / "run", preset="paper", changes=NBFNET, seed=3, time="none",
            execution=Execution(Interrupting(1)),
        )  # fmt: skip
    resumed = resume(tmp_path / "run")
    assert resumed.model is not None
    assert run.model is not None
    for one, other in zip(resumed.model.parameters(), run.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_paths_do_not_explain_it(run: Run) -> None:
    head, _, tail = (run.data.entities.label(int(run.data.test.queries[0, i])) for i in (0, 0, 2))
    with pytest.raises(SettingsError, match=r"paths do not explain its answers. Train one with .* grounded"):
        run.explain(head, "grandparent", tail)


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        (["encoder.context=unreached"], "encoder.context=none"),
        (["training.skip_unreached=true"], "training.skip_unreached=false"),
        (["objective.negatives_from=reached"], "objective.negatives_from=all"),
        (["training.fan_in=4"], "training.fan_in=none"),
    ],
)
def test_what_tells_the_reached_apart_is_refused_with_advice(changes: list[str], advice: str) -> None:
    wanted = "encoder.semantics=nbfnet"
    with pytest.raises(SettingsError, match=advice):
        check_data(configure("nbfnet", changes=[wanted, *changes]), dataset())
    check_data(configure("nbfnet", changes=changes), dataset())
    check_data(configure("nbfnet", changes=[wanted]), dataset())
