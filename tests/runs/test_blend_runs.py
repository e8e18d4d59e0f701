"""Several runs as one: shares from validation, a folder that needs nothing else, answers that are the weighted sum."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kgcf
from kgcf.errors import SettingsError
from kgcf.prediction.blending.ensemble import ValidationScores, choose_shares
from kgcf.runs.blending import blend_runs
from kgcf.runs.copying import copy_run
from kgcf.runs.folder import RunFolder
from kgcf.runs.run import Run
from tests.memory.remembering import CHANGES, PATHS, write_town
from tests.training.tiny import dataset, write_folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("blend")
    data = write_town(folder / "data")
    for seed, changes in ((0, CHANGES), (1, (*PATHS, "memory.enabled=off"))):
        kgcf.fit(data, folder / f"seed {seed}", changes=changes, seed=seed)
    return folder / "seed 0", folder / "seed 1"


@pytest.fixture(scope="module")
def blended(runs: tuple[Path, Path]) -> Run:
    """Opened after the runs it was made of have gone elsewhere."""
    output = runs[0].parent / "both"
    blend_runs(runs, output)
    for run in runs:
        shutil.move(run, runs[0].parent / f"gone {run.name}")
    found = kgcf.open(output)
    for run in runs:
        shutil.move(runs[0].parent / f"gone {run.name}", run)
    return found


def test_scores_are_the_weighted_sum(runs: tuple[Path, Path], blended: Run) -> None:
    assert blended.ensemble is not None
    opened = {path.name: kgcf.open(path) for path in runs}
    members = [opened[name] for name in blended.ensemble.names]
    assert sum(blended.ensemble.shares) == pytest.approx(1)
    data = blended.data
    heads, relations = np.arange(8), np.arange(8) % 6
    found = blended.bind(data.graph, data.entities).scorer.score_with_reach(heads, relations)
    parts = [member.bind(data.graph, data.entities).scorer.score_with_reach(heads, relations) for member in members]
    total = sum(weight * scores for weight, (scores, _) in zip(blended.ensemble.weights, parts, strict=True))
    assert np.array_equal(found[1], parts[0][1] | parts[1][1])
    reached = found[1]
    assert np.allclose(found[0][reached], np.asarray(total)[reached], atol=1e-5)
    assert all(found[0][i][reached[i]].min() >= found[0][i][~reached[i]].max() for i in range(8) if (~reached[i]).any())


def test_it_evaluates_predicts_scores_and_explains_like_a_run(runs: tuple[Path, Path], blended: Run) -> None:
    assert blended.ensemble is not None
    result = blended.evaluate("valid")
    assert list(result.parts) == list(blended.ensemble.names)
    for name, part in result.parts.items():
        assert part.mrr == kgcf.open(runs[0].parent / name).evaluate("valid").mrr
    assert result.protocol["blend"]["names"] == blended.ensemble.names
    answer = blended.predict("e3", "friend", top=1, observed="train")[0]
    members = [kgcf.open(runs[0].parent / name) for name in blended.ensemble.names]
    triple = [(answer.head, "friend", answer.tail)]
    said = [float(member.score(triple, observed="train")[0]) for member in members]
    wanted = float(np.dot(blended.ensemble.weights, said))
    assert answer.logit == pytest.approx(wanted, abs=1e-4)
    assert blended.score(triple, observed="train")[0] == pytest.approx(wanted, abs=1e-4)
    explained = blended.explain(answer.head, "friend", answer.tail, observed="train")
    assert explained.logit == pytest.approx(wanted, abs=1e-4)
    assert explained.probability == pytest.approx(answer.probability, abs=1e-5)
    assert f"Paths and memory are those of {blended.ensemble.names[0]}" in str(explained)
    assert blended.calibration is not None
    assert len(blended.complete("friend", top=5)) == 5


def test_a_run_without_weight_is_not_said_to_answer(blended: Run) -> None:
    opened = kgcf.open(blended.folder.path)
    assert opened.ensemble is not None
    answer = opened.predict("e3", "friend", top=1, observed="train")[0]
    other = opened.ensemble.names[1]
    for weight, said in ((1.0, f"what {other} adds to the answer is not explained"), (0.0, "have no weight")):
        opened.ensemble = replace(opened.ensemble, weights=(1.0, weight))
        assert said in str(opened.explain(answer.head, "friend", answer.tail, observed="train"))


def test_shares_follow_validation() -> None:
    data = dataset()
    task = data.valid
    right = np.zeros((2 * 3, 40, 40), dtype=np.float32)
    for h, r, t in task.queries.tolist():
        right[r, h, t] = right[r + 3, t, h] = 1

    class Good:
        def score_supported(self, heads: np.ndarray, relations: np.ndarray) -> tuple[np.ndarray, ...]:
            return right[relations, heads], np.ones((len(heads), 40), bool), np.ones((len(heads), 40), bool)

    class Noise:
        def score_supported(self, heads: np.ndarray, relations: np.ndarray) -> tuple[np.ndarray, ...]:
            noise = np.random.default_rng(0).normal(size=(len(heads), 40)).astype(np.float32)
            return noise, np.ones((len(heads), 40), bool), np.ones((len(heads), 40), bool)

    scores = ValidationScores([Noise(), Good()], task, 100, 0)  # type: ignore[list-item]
    assert choose_shares(scores, 2).tolist() == [0.0, 1.0]


def test_a_run_that_helps_only_with_a_small_share_gets_one() -> None:
    """Half of it would be worse than none: shares are tried by small steps, not as equal parts of few."""

    class Pretended:
        questions = np.arange(10)

        def reciprocal_ranks(self, shares: np.ndarray) -> np.ndarray:
            return np.full(10, 0.5 - abs(float(shares[1]) - 0.1))

    assert choose_shares(Pretended(), 2)[1] == pytest.approx(0.1)  # type: ignore[arg-type]


def test_runs_that_cannot_be_blended_are_refused(runs: tuple[Path, Path], blended: Run, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="at least two runs. Name another one"):
        blend_runs(runs[:1], tmp_path / "one")
    with pytest.raises(SettingsError, match="is a blend itself"):
        blend_runs([blended.folder.path, runs[0]], tmp_path / "nested")
    other = kgcf.fit(
        write_folder(dataset(1), tmp_path / "data"), tmp_path / "other", changes=(*PATHS, "memory.enabled=off")
    )
    with pytest.raises(SettingsError, match="was trained on other data than"):
        blend_runs([runs[0], other.folder.path], tmp_path / "mixed")
    assert not (tmp_path / "mixed").exists()


def test_a_stop_between_two_copies_leaves_no_run(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[Path] = []

    def copy(folder: RunFolder, target: Path) -> None:
        if copied:
            raise KeyboardInterrupt
        copied.append(target)
        copy_run(folder, target)

    monkeypatch.setattr("kgcf.runs.blending.copy_run", copy)
    with pytest.raises(KeyboardInterrupt):
        blend_runs(runs, tmp_path / "both", limit=20)
    assert copied
    assert not list(tmp_path.iterdir())
