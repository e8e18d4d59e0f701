"""Depth: what is within reach is measured before training, chosen where nobody chose, and warned about elsewhere."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import kgcf.config
from kgcf.config import PRESETS
from kgcf.data.dataset import Dataset, transductive
from kgcf.data.hiding import hide_pairs
from kgcf.data.hops import distances
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import KgcfWarning, NothingLearnedError, StorageError, TrainingError
from kgcf.model.kgcf import KGCF, DecoderSettings
from kgcf.pipeline import Execution, fit, open_run, resume
from kgcf.propagation.layers.encoder import EncoderSettings
from kgcf.propagation.plan.planner import Planner
from kgcf.runs.folder import LOCK
from kgcf.training import reach
from kgcf.training.batches import Batch, triples_batch
from kgcf.training.depth import choose_depth
from kgcf.training.loop import EARLY_STEPS, Listener, Trainer
from kgcf.training.reach import DEEPEST, measure_reach
from kgcf.training.settings import TrainingSettings
from tests.propagation.random_graphs import random_graph
from tests.training.tiny import model, step_context

CHAINS = 40
SMALL = ("encoder.width=8", "decoder.hidden=8", "objective.negatives=8", "space.walks=2", "training.threads=1")


def chains(closed: int = CHAINS - 12) -> Dataset:
    """Chains of six entities; their ends are linked by `far`, which is five steps of `next`: a cycle of six edges.

    So every link lies on a path of five edges between its ends, and on no shorter one. The last twelve chains are
    open in train: their `far` is to be predicted.
    """
    starts = np.arange(CHAINS) * 6
    steps = [(s + i, 0, s + i + 1) for s in starts for i in range(5)]
    ends = [(int(s), 1, int(s) + 5) for s in starts]
    train = np.array(steps + ends[:closed])
    splits = (train, np.array(ends[-12:-6]), np.array(ends[-6:]))
    return transductive("chains", Vocabulary.numbered(CHAINS * 6), Vocabulary(["next", "far"]), splits)


class Heard(Listener):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.mark.parametrize(
    ("shares", "wanted", "chosen"),
    [
        ((0.0, 0.0, 0.0, 0.0, 0.9, 0.9, 0.9, 0.9), 4, 5),
        ((0.0, 0.0, 0.1, 0.2, 0.5, 0.8, 0.86, 0.9), 4, 7),  # the least with 95 % of what 8 reach
        ((0.3, 0.4, 0.6, 0.7, 0.8, 0.84, 0.86, 0.9), 4, 4),  # enough already
        ((0.0, 0.0, 0.0, 0.0, 0.9, 0.9, 0.9, 0.9), 6, 6),  # deeper than needed is left alone
        ((0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0.02, 0.04), 4, 4),  # not clearly more
        ((0.0,) * 8, 4, 4),
        ((0.0,) * 7 + (1.0,), 4, 8),
        ((0.0,) * 8, 12, 12),  # beyond what was measured
    ],
)
def test_choose_depth(shares: tuple[float, ...], wanted: int, chosen: int) -> None:
    assert choose_depth(shares, wanted) == chosen


def test_hidden_triples_lengthen_the_way() -> None:
    for seed in range(4):
        graph = random_graph(seed, entity_count=15, triple_count=25)
        pairs = graph.triples[:, [0, 2]].astype(np.int64)
        hidden = hide_pairs(graph, pairs[:, 0], pairs[:, 1:])
        found = distances(graph, pairs, 5, hidden)
        for row, pair in enumerate(pairs):
            smaller = graph.without(graph.triples[hidden.of(row)])
            assert found[row] == distances(smaller, pair[None], 5)[0]
        assert (found > 1)[pairs[:, 0] != pairs[:, 1]].all()


@pytest.mark.parametrize("remove", ["triple", "pair"])
def test_the_reach_is_what_the_layers_reach(remove: reach.Removal, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, made = random_graph(1, entity_count=40, triple_count=60), []

    def keep(*arguments: object) -> Batch:
        made.append(triples_batch(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(reach, "triples_batch", keep)
    found = measure_reach(graph, graph.triples[:0], 4, remove, 0)
    assert found.valid is None
    net, (batch,) = model(graph.relation_count), made  # two layers
    plan = Planner(graph, 2).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
    reached = net.encode(plan).reached[:, 0].numpy()
    assert found.train[1] == reached.mean()
    assert 0 < found.train[1] < found.train[DEEPEST - 1]


def test_the_reach_of_chains() -> None:
    data = chains()
    found = measure_reach(data.graph, data.valid.queries, 8, "triple", 0)
    closed = (CHAINS - 12) * 6 / len(data.graph)
    assert found.train[:4] == (0.0,) * 4
    assert found.train[4] == pytest.approx(closed)
    assert found.valid == (0.0,) * 4 + (1.0,) * 4
    assert "0% of the sampled train queries and 0% of the validation queries" in found.sentence(4)


def test_the_empty_preset_is_empty() -> None:
    """`fit` takes it to see what others than the preset ask for."""
    assert PRESETS["default"] == {}


def test_fast_gets_the_depth_that_reaches_the_answers(tmp_path: Path) -> None:
    said: list[str] = []
    heard = Heard()
    changes = (*SMALL, "training.budget=3000", "training.epochs=20", "training.learning_rate=0.02")
    run = fit(
        chains(), tmp_path / "run", preset="fast", changes=changes, time="none", execution=Execution(heard, said.append)
    )
    assert run.settings.encoder.layers == 5
    assert "layers = 5" in (tmp_path / "run" / "config.toml").read_text()
    assert any("encoder.layers = 5 instead of 4" in line for line in said)
    assert heard.warnings == []
    assert run.evaluate("test")["mrr"] > 0.5


@pytest.mark.parametrize("by", ["change", "file", "benchmark"])
def test_a_depth_that_somebody_chose_stays_and_is_warned_about(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, changes = None, [*SMALL, "training.batch_size=8"]
    if by == "file":
        file = tmp_path / "mine.toml"
        file.write_text("[encoder]\nlayers = 4\n")
    elif by == "change":
        changes.append("encoder.layers=4")
    else:
        monkeypatch.setattr(kgcf.config, "benchmark_values", lambda _: {"encoder": {"layers": 4}})
    heard, data = Heard(), replace(chains(), benchmark="chains" if by == "benchmark" else None)
    with pytest.raises(TrainingError, match="nothing was learned.*encoder.layers=5"):
        fit(data, tmp_path / "run", preset="fast", config=file, changes=changes, execution=Execution(heard))
    before, early = heard.warnings
    assert "With 4 layers the answer is within reach for 0%" in before
    assert "consider --set encoder.layers=5" in before
    assert "160 of 160 training queries were left out" in early
    assert f"after {EARLY_STEPS} steps" in early
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("labels", [False, True])
def test_a_training_that_learned_nothing_leaves_its_folder_free(tmp_path: Path, stopped: bool, labels: bool) -> None:
    """Whether its first epoch was stopped and taken up again or not; the same command with more layers then works."""
    folder, changes = tmp_path / "run", [*SMALL, "training.batch_size=8", "training.checkpoint_seconds=0"]
    if labels:
        (tmp_path / "mine.csv").write_text("0,a\n1,b\n2,a\n")
        changes += ["treatment.method=file", f"treatment.path={tmp_path / 'mine.csv'}"]

    class Stopping(Heard):
        def step(self, done: int, total: int, epoch: int, means: dict[str, float]) -> None:
            made.update(entry.name for entry in folder.iterdir())
            if stopped and done == 3:
                raise KeyboardInterrupt

    made: set[str] = set()
    shallow = [*changes, "encoder.layers=4"]
    if stopped:
        with pytest.raises(KeyboardInterrupt):
            fit(chains(), folder, changes=shallow, execution=Execution(Stopping()))
    message = f"nothing was learned.*encoder.layers=5.*Nothing was kept: another training may use {folder}"
    with pytest.raises(NothingLearnedError, match=message):
        if stopped:
            resume(folder, Execution(Heard()))
        else:
            fit(chains(), folder, changes=shallow, execution=Execution(Stopping()))
    assert {"run.json", "space.safetensors", "counterfactuals.parquet", "checkpoint.safetensors"} <= made
    assert ("treatment_labels.csv" in made) == labels
    assert [entry.name for entry in folder.iterdir()] == [LOCK]
    with pytest.raises(StorageError, match="learned nothing. Start it again with: kgcf train"):
        resume(folder)
    fit(chains(), folder, changes=[*changes, "encoder.layers=5", "training.epochs=1"], execution=Execution(Heard()))
    assert open_run(folder).settings.encoder.layers == 5


def test_without_a_listener_warnings_are_python_warnings(tmp_path: Path) -> None:
    changes = [*SMALL, "encoder.layers=3", "training.batch_size=64"]
    with pytest.warns(KgcfWarning, match="consider --set encoder.layers=5"), pytest.raises(TrainingError):
        fit(chains(), tmp_path / "run", changes=changes)


def test_a_graph_without_paths_is_warned_about(tmp_path: Path) -> None:
    heard = Heard()
    data = chains(closed=0)
    with pytest.raises(TrainingError, match="nothing was learned.*More layers would not help.*Give more triples"):
        fit(data, tmp_path / "run", changes=SMALL, execution=Execution(heard))
    assert "With 8 layers the answer is within reach for 0%" in heard.warnings[0]
    assert "Give more triples" in heard.warnings[0]


def test_few_contributing_queries_are_a_warning_not_a_stop() -> None:
    """Three of forty chains are closed: five layers reach 18 of 203 links, and something is learned."""
    heard = Heard()
    encoder = EncoderSettings(layers=5, width=4, context="none")
    net = KGCF(encoder, DecoderSettings(hidden=4, treatment=False), 2, torch.Generator().manual_seed(0))
    settings = TrainingSettings(epochs=2, batch_size=32, threads=1)
    context = step_context(net, chains(closed=3).graph, skip_unreached=True)
    progress = Trainer(context, settings, None, listener=heard).run()
    assert [entry["queries"] for entry in progress.history] == [18, 18]
    assert heard.warnings == [w for w in heard.warnings if w.startswith("185 of 203 training queries were left out")]
    assert len(heard.warnings) == 1
