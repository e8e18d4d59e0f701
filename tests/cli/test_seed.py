"""`kgcf train --seed`: every seed of the run, but for those that `--set` names."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from kgcf.cli.train import train_command
from kgcf.config import Settings, configure, seeds_of
from kgcf.errors import SettingsError
from kgcf.runs.folder import RunFolder
from kgcf.storage import map_arrays
from tests.training.tiny import TINY, dataset, write_folder

QUICK = [p for c in (*TINY, "objective.negatives=4", "training.threads=1", "training.epochs=1") for p in ("--set", c)]


def train(data: Path, output: Path, *more: str) -> RunFolder:
    app = typer.Typer()
    app.command()(train_command)
    done = CliRunner().invoke(app, [str(data), "--output", str(output), *QUICK, *more])
    assert done.exit_code == 0, done.output
    return RunFolder(output)


def test_one_seed_for_everything_on_the_command_line(tmp_path: Path) -> None:
    data = write_folder(dataset(), tmp_path / "tiny")
    louvain = ("--set", "treatment.method=louvain", "--set", "space.walks=2")
    by_one = train(data, tmp_path / "one", *louvain, "--seed", "7")
    assert seeds_of(by_one.settings()) == {"treatment.seed": 7, "space.seed": 7, "training.seed": 7, "memory.seed": 7}
    changes = [f"{section}.seed=7" for section in ("treatment", "space", "training", "memory")]
    by_name = train(data, tmp_path / "names", *louvain, *(word for c in changes for word in ("--set", c)))
    weights = [map_arrays(folder.file("model.safetensors")) for folder in (by_one, by_name)]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_every_seed_that_there_is_is_set() -> None:
    """A section that gets a seed some day must be named here, or be set all the same."""
    sections = {name: type(field.default) for name, field in Settings.model_fields.items() if field.default is not None}
    have = [name for name, kind in sections.items() if "seed" in kind.model_fields]
    given = configure(seed=3, changes=["treatment.method=louvain"]).model_dump()
    assert {name: given[name]["seed"] for name in have} == dict.fromkeys(
        ("treatment", "space", "training", "memory"), 3
    )


def test_what_is_set_by_name_wins_and_a_treatment_without_chance_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[training]\nseed = 1\n[space]\nseed = 1\n")
    found = configure(file=tmp_path / "mine.toml", changes=["space.seed=2"], seed=5)
    assert seeds_of(found) == {"space.seed": 2, "training.seed": 5, "memory.seed": 5}
    assert found.treatment.seed == 0
    (tmp_path / "mine.toml").write_text("[treatment]\nmethod = 'louvain'\n")
    assert configure(file=tmp_path / "mine.toml", seed=5).treatment.seed == 5
    assert seeds_of(configure(file=tmp_path / "mine.toml", changes=["treatment.method=core_number"], seed=5)) == {
        "space.seed": 5,
        "memory.seed": 5,
        "training.seed": 5,
    }
    with pytest.raises(SettingsError, match=r"seed cannot be -1"):
        configure(seed=-1)


def test_changes_in_every_form() -> None:
    forms = ["training.batch_size=64", ["training.batch_size=64"], {"training.batch_size": 64}]
    assert {configure(changes=form).training.batch_size for form in (*forms, {"training": {"batch_size": 64}})} == {64}
    with pytest.raises(SettingsError, match=r"'batch_size' should be section.key, for example {'training.batch_size'"):
        configure(changes={"batch_size": 64})
    with pytest.raises(SettingsError, match="There is no setting 'training.batchsize'. Did you mean 'batch_size'"):
        configure(changes={"training.batchsize": 64})
