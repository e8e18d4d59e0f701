"""Every baseline learns: on umls it beats counting clearly within seconds."""

import pytest

from kgcf.baselines.catalogue import BASELINES
from kgcf.baselines.frequency import FrequencyScorer
from kgcf.config import configure
from kgcf.data.source import read
from kgcf.evaluation.results import Evaluation, evaluate
from kgcf.prediction.baseline_graph import BaselineGraph
from kgcf.runs.any_model import new_baseline
from kgcf.training.baseline_loop import BaselineTrainer

EPOCHS = {
    "neurallp": 3,
    "drum": 3,
    "pra": 1,
    "complex": 6,
    "transe": 6,
    "rotate": 16,
    "lte-conve": 24,
    "compgcn-conve": 24,
}
OTHERS = 12
FAST = ("training.learning_rate=0.01", "training.batch_size=64")  # so that seconds are enough
QUICK = ("complex", "transe")  # the others are slow: seconds each, and there are many
pytestmark = pytest.mark.benchmark


@pytest.fixture(scope="module")
def floor() -> Evaluation:
    data = read("umls")
    return evaluate(FrequencyScorer(data.graph), data, "test", model="frequency")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in BASELINES if name != "frequency"],
)
def test_it_beats_counting_clearly(name: str, floor: Evaluation) -> None:
    data = read("umls")
    quickly = FAST if BASELINES[name].needs_pykeen and name != "transe" else ()
    settings = configure(baseline=name, changes=[*quickly, f"training.epochs={EPOCHS.get(name, OTHERS)}"])
    model = new_baseline(settings, data.graph)
    BaselineTrainer(model, settings.training, None).run()
    bound = BaselineGraph(model, data.graph, data.entities, data)
    found = evaluate(bound.scorer, data, "test", model=name)
    assert found["mr"] < 0.7 * floor["mr"]
    assert found["hits@10"] > floor["hits@10"] + 0.04
    if name != "rotate" and "transe" not in name:  # distances are slow to tell the first places apart
        assert found.mrr > floor.mrr + 0.05
