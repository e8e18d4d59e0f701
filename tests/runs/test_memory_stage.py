"""The memory stage of a run: when there is one, what it says, that it goes on after a stop and never saw test."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kgcf
from kgcf.config import configure
from kgcf.data.source import read
from kgcf.errors import SettingsError
from kgcf.memory.trainer import MemoryTrainer
from kgcf.pipeline import Execution
from kgcf.prediction.observed_graph import with_paths
from kgcf.runs.folder import RunFolder
from kgcf.runs.memory_stage import LEAST_TRIPLES, memory_stage, why_without
from kgcf.storage import map_arrays
from kgcf.training.loop import Listener
from tests.data.test_inductive_validation import write_pair
from tests.memory.remembering import CHANGES, PATHS
from tests.prediction.test_nothing_of_test import Parts, other_test, parts, with_data
from tests.training.tiny import dataset


class KilledError(BaseException):
    """Ends a training like a kill: nothing hears of it."""


def many(found: Parts) -> Parts:
    """Enough validation triples for `auto` to look at memory."""
    more = [(f"e{i}", "friend", f"e{(i + step) % 40}") for i in range(40) for step in (3, 11, 19)]
    spare = [row for row in more if row not in {*found.train, *found.valid, *found.test}]
    assert len(found.valid) + len(spare) >= LEAST_TRIPLES
    return Parts(found.train, found.valid + spare, [row for row in found.test if row not in spare])


def test_another_test_file_gives_the_same_memory_and_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    changes = (*CHANGES, "memory.rank=8", "memory.epochs=40")
    run = kgcf.fit(parts(0).write(tmp_path / "data"), tmp_path / "run", preset="nbfnet", changes=changes)
    other = with_data(run, read(other_test(parts(0)).write(tmp_path / "other")))
    assert len(other.data.entities) > len(run.data.entities)
    folder = RunFolder(tmp_path / "again")
    found = memory_stage(folder, other.data, run.settings, other.bind_task, Listener())
    assert run.recall is not None
    assert found is not None
    mine, wanted = (map_arrays(each.file("memory.safetensors")) for each in (folder, run.folder))
    assert all(np.array_equal(mine[name], wanted[name]) for name in wanted)
    one, two = run.recall.blend, found.blend
    assert (one.weights, one.common, one.shrinkage, one.unreached) == (
        two.weights,
        two.common,
        two.shrinkage,
        two.unreached,
    )
    assert one.figures == two.figures
    assert len(set(one.weights)) > 1 or one.common > 0  # something was weighed


@pytest.mark.parametrize("moment", ["training", "weighing", "sealing"])
def test_a_killed_run_resumes_to_the_same_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    whole = kgcf.fit(dataset(), tmp_path / "whole", changes=(*CHANGES, "training.checkpoint_seconds=0"))
    with monkeypatch.context() as patched:
        _kill_at(moment, patched)
        with pytest.raises(KilledError):
            kgcf.fit(dataset(), tmp_path / "killed", changes=(*CHANGES, "training.checkpoint_seconds=0"))
    names = {path.name for path in (tmp_path / "killed").iterdir()}
    assert ("memory_checkpoint.safetensors" in names) == (moment != "sealing")
    assert ("blend.json" in names) == (moment == "sealing")
    again = kgcf.resume(tmp_path / "killed")
    mine, wanted = (map_arrays(run.folder.file("memory.safetensors")) for run in (again, whole))
    assert all(np.array_equal(mine[name], wanted[name]) for name in wanted)
    assert again.recall is not None
    assert whole.recall is not None
    assert again.recall.blend.weights == whole.recall.blend.weights
    assert not again.folder.file("memory_checkpoint.safetensors").exists()


def _kill_at(moment: str, patched: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KilledError

    if moment == "training":
        usual = MemoryTrainer._save

        def save(trainer: MemoryTrainer) -> None:
            usual(trainer)
            if trainer.progress.epoch == 2 and trainer.progress.step == 3:
                raise KilledError

        patched.setattr(MemoryTrainer, "_save", save)
    elif moment == "weighing":
        patched.setattr("kgcf.runs.memory_stage.collect_reciprocal_ranks", killed)
    else:
        patched.setattr("kgcf.runs.run.Run.save_model", killed)


def test_auto_does_without_where_memory_could_not_help_or_be_weighed(tmp_path: Path) -> None:
    settings = configure()
    few = why_without(dataset(), settings) or ""
    assert "6 validation triples are too few" in few
    assert "(100 would do). --set memory.enabled=on uses one anyway." in few
    assert why_without(read(many(parts(0)).write(tmp_path / "many")), settings) is None
    many(parts(0)).write(tmp_path / "pair")
    parts(5, "new").write(tmp_path / "pair_ind")
    pair = read(tmp_path / "pair")
    assert pair.inductive
    assert "test asks about another graph" in (why_without(pair, settings) or "")
    forced = configure(changes="memory.enabled=on")
    assert why_without(pair, forced) is None
    found = dataset()
    bare = replace(found, valid=replace(found.valid, queries=found.valid.queries[:0]))
    assert "anyway" not in (why_without(bare, settings) or "")
    with pytest.raises(SettingsError, match=r"memory.enabled cannot be on: .* has no validation triples"):
        why_without(bare, forced)


@pytest.mark.parametrize("time", ["none", "10m"])
def test_a_memory_that_cannot_be_weighed_is_refused_before_anything_is_trained(tmp_path: Path, time: str) -> None:
    """No validation triples; or only such as ask about entities of another graph, which memory would take for its."""
    bare = replace(dataset(), valid=replace(dataset().valid, queries=dataset().valid.queries[:0]))
    elsewhere = read(write_pair(tmp_path))
    assert elsewhere.validated_elsewhere
    for data, message in ((bare, "has no validation triples"), (elsewhere, "ask about another graph, and memory")):
        with pytest.raises(SettingsError, match=message):
            kgcf.fit(data, tmp_path / "run", changes=CHANGES, time=time)
    assert not (tmp_path / "run").exists()


def test_the_output_says_what_was_decided(tmp_path: Path) -> None:
    said: list[str] = []
    execution = Execution(say=said.append)
    data = read(many(parts(0)).write(tmp_path / "many"))
    small = ("memory.rank=2", "memory.epochs=1")
    run = kgcf.fit(data, tmp_path / "run", changes=(*PATHS, *small), execution=execution)
    told = next(line for line in said if line.startswith(("Memory is used:", "Memory is not used,")))
    blend = json.loads(run.folder.file("blend.json").read_text())
    assert blend["reason"] == told
    assert blend["used"] == (run.recall is not None) == run.folder.sealed("memory.safetensors")
    assert any(line.startswith("memory, epoch 1  tails") for line in said)
    assert run.evaluate("valid").protocol["memory"]["figures"] == blend["figures"]
    off = kgcf.fit(data, tmp_path / "off", changes=(*PATHS, "memory.enabled=off"))
    assert off.recall is None
    assert not off.folder.file("blend.json").exists()


def test_the_presets_of_published_models_have_no_memory() -> None:
    assert [configure(name).memory.enabled for name in ("default", "fast", "paper", "nbfnet")] == [
        "auto",
        "auto",
        "off",
        "off",
    ]


def test_an_inductive_test_is_answered_by_paths_alone(tmp_path: Path) -> None:
    parts(0).write(tmp_path / "pair")
    parts(5, "new").write(tmp_path / "pair_ind")
    run = kgcf.fit(tmp_path / "pair", tmp_path / "run", changes=CHANGES)
    assert run.recall is not None
    task = run.data.test
    both = with_paths(run.bind(task.observed, task.entities))
    assert both.recall is None
    assert with_paths(run.bind(run.data.graph, run.data.entities)).recall is not None
    heads, relations = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    found = both.scorer.score_tails(heads, relations)
    run.recall = None
    assert np.array_equal(found, run.bind(task.observed, task.entities).scorer.score_tails(heads, relations))
