"""A finished run gets a memory: its paths stay as they are, a stop is made good, what cannot be is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import kgcf
from kgcf.cli import app
from kgcf.errors import SettingsError
from kgcf.memory.trainer import MemoryTrainer
from kgcf.prediction.blending.recall import Recall
from kgcf.runs.blending import blend_runs
from kgcf.runs.folder import RunFolder
from kgcf.runs.memory_addition import add_memory, is_pending
from kgcf.storage import map_arrays
from tests.memory.remembering import CHANGES, MEMORY, PATHS, write_town
from tests.training.tiny import dataset

ADDED = (*MEMORY, "memory.seed=3")


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of paths, and one that was trained with the memory that the other one is to get."""
    folder = tmp_path_factory.mktemp("addition")
    data = write_town(folder / "data")
    kgcf.fit(data, folder / "paths", changes=(*PATHS, "memory.enabled=off"))
    kgcf.fit(data, folder / "whole", changes=(*CHANGES, "memory.seed=3"))
    return folder


def files(folder: Path, name: str) -> dict[str, np.ndarray]:
    return dict(map_arrays(folder / name))


def test_it_is_the_run_that_was_trained_with_a_memory_from_the_start(homes: Path, tmp_path: Path) -> None:
    before = (homes / "paths" / "run.json").read_bytes()
    said: list[str] = []
    run = add_memory(homes / "paths", tmp_path / "new", ADDED, say=said.append)
    assert (homes / "paths" / "run.json").read_bytes() == before
    assert any(line.startswith("memory, epoch 4") for line in said)
    for name in ("model.safetensors", "memory.safetensors"):
        mine, wanted = files(tmp_path / "new", name), files(homes / "whole", name)
        assert all(np.array_equal(mine[key], wanted[key]) for key in wanted)
    whole, again = kgcf.open(homes / "whole"), kgcf.open(tmp_path / "new")
    assert again.settings == whole.settings == run.settings
    assert again.recall is not None
    assert whole.recall is not None
    assert again.recall.blend.weights == whole.recall.blend.weights
    assert again.evaluate("valid").mrr == whole.evaluate("valid").mrr
    assert again.calibration is not None
    assert not is_pending(again.folder)


def test_where_memory_is_silent_probabilities_are_those_of_the_paths(homes: Path) -> None:
    """Memory moves logits, so a calibration with memory says nothing of logits without."""
    paths, whole = kgcf.open(homes / "paths"), kgcf.open(homes / "whole")
    assert whole.recall is not None
    whole.recall = Recall(whole.recall.memory, replace(whole.recall.blend, weights=(1.0,) * 6))
    whole.calibrate(test=False, limit=7, save=False)
    paths.calibrate(test=False, limit=7, save=False)
    data = paths.data
    triples = [
        (data.entities.label(h), data.relations.label(r), data.entities.label(t)) for h, r, t in data.graph.triples
    ]
    assert whole.calibration is not None
    assert paths.calibration is not None
    assert whole.calibration.calibration != paths.calibration.calibration
    assert whole.calibration.paths == paths.calibration.calibration
    again = type(whole.calibration).from_json(json.loads(json.dumps(whole.calibration.to_json())))
    assert again.paths == whole.calibration.paths
    for ask in (
        lambda run: [(a.tail, a.probability) for a in run.predict("e3", "friend", graph=triples)],
        lambda run: [(a.head, a.tail, a.probability) for a in run.complete("friend", top=9, graph=triples)],
        lambda run: run.score(triples[:40], probabilities=True, observed="train").tolist(),  # learned by heart
        lambda run: run.explain(*triples[0], observed="train").probability,
    ):
        assert ask(whole) == ask(paths)
    own = [[a.probability for a in run.predict("e3", "friend", observed="train")] for run in (whole, paths)]
    assert own[0] != own[1]


def test_a_stop_is_made_good_by_resume(homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = MemoryTrainer._finish_epoch

    def finish(trainer: MemoryTrainer) -> None:
        usual(trainer)
        if trainer.progress.epoch == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(MemoryTrainer, "_finish_epoch", finish)
        with pytest.raises(KeyboardInterrupt):
            add_memory(homes / "paths", tmp_path / "new", ADDED)
    assert is_pending(RunFolder(tmp_path / "new"))
    assert kgcf.open(tmp_path / "new").recall is None  # a run of paths until then
    run = kgcf.resume(tmp_path / "new")
    mine, wanted = files(tmp_path / "new", "memory.safetensors"), files(homes / "whole", "memory.safetensors")
    assert all(np.array_equal(mine[key], wanted[key]) for key in wanted)
    assert run.recall is not None
    assert not run.folder.file("memory_checkpoint.safetensors").exists()


def test_a_stop_while_the_run_is_copied_leaves_nothing(
    homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(path: Path, text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kgcf.runs.memory_addition.write_text", write)
    with pytest.raises(KeyboardInterrupt):
        add_memory(homes / "paths", tmp_path / "new", ADDED)
    assert not list(tmp_path.iterdir())


def test_a_run_from_before_there_was_memory_gets_none_by_resume(homes: Path) -> None:
    folder = RunFolder(homes / "paths")
    config = folder.file("config.toml")
    text = config.read_text()
    try:
        config.write_text(text.split("[memory]")[0])
        assert folder.settings().memory.enabled == "auto"
        assert not is_pending(folder)
    finally:
        config.write_text(text)


def test_what_cannot_have_a_memory_is_refused_before_anything_is_written(homes: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"only memory.… can be set here, not training"):
        add_memory(homes / "paths", tmp_path / "new", "training.epochs=3")
    with pytest.raises(SettingsError, match="contradict each other"):
        add_memory(homes / "paths", tmp_path / "new", "memory.enabled=off")
    with pytest.raises(SettingsError, match="8 validation triples are too few"):
        add_memory(homes / "paths", tmp_path / "new")  # by itself it is `auto`
    blend_runs([homes / "paths", homes / "whole"], tmp_path / "both", limit=5)
    with pytest.raises(SettingsError, match="is a blend"):
        add_memory(tmp_path / "both", tmp_path / "new", ADDED)
    kgcf.fit(dataset(), tmp_path / "other", model="distmult", changes=["training.epochs=1", "baseline.dimension=4"])
    with pytest.raises(SettingsError, match="a run of distmult; only kgcf can have a memory"):
        add_memory(tmp_path / "other", tmp_path / "new", ADDED)
    with pytest.raises(SettingsError, match="a run of distmult. Only runs of kgcf itself can be blended"):
        blend_runs([tmp_path / "other", homes / "paths"], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_command_says_what_validation_found(homes: Path, tmp_path: Path) -> None:
    changes = [word for change in MEMORY for word in ("--set", change)]
    words = ["blend", str(homes / "paths"), "--memory", "--output", str(tmp_path / "new"), *changes]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.output.count("Memory is used") == 1
    assert f"Next: kgcf evaluate {tmp_path / 'new'}" in done.output
    two = ["blend", str(homes / "paths"), str(homes / "whole"), "--output", str(tmp_path / "two")]
    assert CliRunner().invoke(app, [*two, "--memory"]).exit_code != 0
    assert CliRunner().invoke(app, [*two, "--set", "memory.rank=3"]).exit_code != 0
    assert not (tmp_path / "two").exists()
