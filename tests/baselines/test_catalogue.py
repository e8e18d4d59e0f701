"""Names, settings and refusals of the models beside KGCF."""

import builtins
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from kgcf.baselines.building import check_pykeen
from kgcf.baselines.catalogue import BASELINES
from kgcf.baselines.settings import TRAINING_KEYS
from kgcf.cli import app
from kgcf.config import configure, read_values, seeds_of, settings_from, write_toml
from kgcf.errors import DataError, MissingExtraError, SettingsError, UnknownNameError
from kgcf.runs.baselines import check_baseline, choose_model, model_names
from kgcf.training.distributed import World
from tests.training.tiny import dataset

PAPER = [
    *("pra", "neurallp", "drum", "transe", "distmult", "complex", "rotate", "hake", "lowfer", "tucker", "conve"),
    *(f"{encoder}-{decoder}" for encoder in ("rgcn", "compgcn", "lte") for decoder in ("transe", "distmult", "conve")),
    "nbfnet",
]


def test_all_systems_of_the_paper_are_there() -> None:
    assert len(PAPER) == 21
    assert set(PAPER) <= set(model_names())
    assert set(model_names()) == {*PAPER, "kgcf", "frequency"}


def test_models_are_listed_with_their_papers() -> None:
    listed = CliRunner().invoke(app, ["models", "--json"], catch_exceptions=False)
    rows = {row["model"]: row for row in json.loads(listed.stdout)}
    assert list(rows) == model_names()
    assert rows["hake"]["paper"] == "Zhang et al. 2020"
    assert all(row["in one line"] and (row["paper"] or name == "frequency") for name, row in rows.items())


@pytest.mark.parametrize("name", BASELINES)
def test_settings_are_written_and_read_back(name: str, tmp_path: Path) -> None:
    settings = configure(baseline=name, changes=["training.epochs=7"], seed=3)
    text = write_toml(settings)
    (tmp_path / "config.toml").write_text(text)
    again = settings_from(read_values(tmp_path / "config.toml"))
    assert again == settings
    assert type(again.baseline) is BASELINES[name].settings
    assert "[encoder]" not in text
    assert set(settings.model_dump()) == {"training", "baseline"}
    assert set(settings.model_dump()["training"]) == set(TRAINING_KEYS)
    assert seeds_of(settings) == {"training.seed": 3}
    assert choose_model(None, "default", tmp_path / "config.toml") == (name, name)


def test_a_run_of_kgcf_says_nothing_of_baselines() -> None:
    assert "baseline" not in configure().model_dump()
    assert "baseline" not in write_toml(configure())


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("transe", "encoder.layers=2", "transe has no setting 'encoder.layers'. It has: training.epochs"),
        ("transe", "training.remove=pair", "no setting 'training.remove'"),
        ("transe", "baseline.rank=3", "no setting 'baseline.rank'"),
        ("transe", "baseline.margin=-1", "baseline.margin cannot be -1: Input should be greater than 0"),
        ("pra", "baseline.length=4", "baseline.length cannot be 4"),
        ("lte-conve", "baseline.operations=x", "baseline.operations cannot be 'x'"),
        ("transe", "baseline.model=rotate", "The settings are those of rotate, and transe is to be trained"),
    ],
)
def test_settings_of_another_model_are_refused(name: str, change: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("(", r"\(")):
        configure(baseline=name, changes=[change])


def test_which_model_is_meant() -> None:
    assert choose_model(None, "paper") == ("paper", None)
    assert choose_model("kgcf", "fast") == ("fast", None)
    assert choose_model("nbfnet", "default") == ("nbfnet", None)
    assert choose_model("drum", "default") == ("drum", "drum")
    with pytest.raises(UnknownNameError, match="no model called 'trans'. Did you mean 'transe'"):
        choose_model("trans", "default")
    with pytest.raises(SettingsError, match="leave out --preset paper"):
        choose_model("transe", "paper")


def test_what_cannot_work_is_refused_before_there_is_a_folder() -> None:
    settings = configure(baseline="transe").baseline
    paths = configure(baseline="drum").baseline
    assert settings is not None
    assert paths is not None
    with pytest.raises(SettingsError, match="start it without torchrun"):
        check_baseline(settings, dataset(), World(0, 2))

    with pytest.raises(SettingsError, match="drum multiplies sparse matrices on the CPU"):
        check_baseline(paths, dataset(), World(), torch.device("cuda"))

    class Inductive:
        name, inductive, graph = "new people", True, dataset().graph

    task: Any = Inductive()
    with pytest.raises(
        DataError, match="transe knows only the entities it was trained on.*kgcf, nbfnet, frequency, pra"
    ):
        check_baseline(settings, task, World())
    check_baseline(paths, task, World())


def test_a_missing_pykeen_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("kgcf.baselines.embeddings")]:
        monkeypatch.delitem(sys.modules, name)
    original = builtins.__import__

    def without(name: str, *given: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "pykeen":
            raise ModuleNotFoundError("No module named 'pykeen'", name="pykeen")
        return original(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"The model 'hake' needs the optional extra 'baselines'. Install it"):
        check_pykeen("hake")
    check_pykeen("drum")
