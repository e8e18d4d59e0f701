"""Presets have documented settings; unknown keys and impossible values are sentences that name the choices."""

from pathlib import Path

import pytest

from kgcf.config import PRESETS, Settings, benchmark_values, configure, read_values, settings_from, write_toml
from kgcf.data import registry
from kgcf.errors import KgcfError, SettingsError


def test_presets() -> None:
    default, fast, paper, nbfnet = (configure(name) for name in ("default", "fast", "paper", "nbfnet"))
    assert default.treatment.method == "core_number"
    assert default.treatment.leave_one_out
    assert default.matching.candidates == "observed"
    assert (default.objective.cf_target, default.objective.disc, default.objective.disc_pairs) == ("outcome", "kl", 8)
    assert (default.encoder.context, default.training.remove, default.training.schedule) == (
        "unreached",
        "auto",
        "cosine",
    )
    assert default.training.skip_unreached
    assert (fast.encoder.layers, fast.training.budget) == (4, 20_000)
    assert fast.model_copy(update={"encoder": default.encoder, "training": default.training}) == default
    assert (paper.treatment.leave_one_out, paper.matching.candidates, paper.encoder.context) == (False, "all", "none")
    assert (paper.objective.cf_target, paper.objective.disc_pairs) == ("printed", "all")
    assert (paper.objective.alpha, paper.objective.beta) == (1.0, 0.001)  # of the paper's grid, by validation
    assert (nbfnet.decoder.treatment, nbfnet.objective.alpha, nbfnet.objective.beta) == (False, 0.0, 0.0)
    assert nbfnet.encoder.context == "none"
    assert not nbfnet.needs_matching
    assert default.needs_matching


def test_every_benchmark_has_a_valid_configuration() -> None:
    for name in registry.names():
        assert benchmark_values(name), name
        for preset in PRESETS:
            configure(preset, name)
    assert configure("default", "fb15k-237").encoder.dependent
    assert configure("default", "fb15k-237").training.remove == "pair"
    assert configure("default", "fb237:v1").training.remove == "triple"
    assert not configure("default", "wn18rr").encoder.dependent
    assert benchmark_values("my own data") == {}


def test_changes_and_files_come_last(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[training]\nepochs = 3\nbatch_size = 16\n")
    settings = configure(
        "nbfnet", "fb15k-237", file, ["training.batch_size=64", "objective.disc=mean", "training.budget=none"]
    )
    assert (settings.training.epochs, settings.training.batch_size, settings.training.budget) == (3, 64, None)
    assert settings.objective.disc == "mean"
    assert settings.encoder.dependent
    assert configure(changes=["encoder.context=none"]).encoder.context == "none"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.epoch=3", "no setting 'training.epoch'. Did you mean 'epochs'.*Choices: epochs, batch_size"),
        ("trainign.epochs=3", "no setting 'trainign'.*Choices: encoder, decoder"),
        ("training.epochs=0", "training.epochs cannot be 0"),
        ("encoder.aggregate=median", "encoder.aggregate cannot be 'median'.*'pna', 'sum'"),
        ("objective.alpha=-1", "objective.alpha cannot be -1"),
        ("encoder.message=rotate", "fine"),
        ("epochs=3", "should be section.key=value"),
        ("treatment.k=3", "'k' belongs to the treatment 'core_component'"),
    ],
)
def test_mistakes_name_the_choices(change: str, message: str) -> None:
    if message == "fine":
        assert configure(changes=[change]).encoder.message == "rotate"
        return
    with pytest.raises(SettingsError, match=message):
        configure(changes=[change])


def test_unknown_presets_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(KgcfError, match="no preset called 'papr'. Did you mean 'paper'"):
        configure("papr")
    with pytest.raises(SettingsError, match="cannot be read"):
        configure(file=tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[training\n")
    with pytest.raises(SettingsError, match="not valid TOML"):
        configure(file=tmp_path / "bad.toml")
    (tmp_path / "flat.toml").write_text("epochs = 3\n")
    with pytest.raises(SettingsError, match="'epochs' must be a section"):
        configure(file=tmp_path / "flat.toml")


@pytest.mark.parametrize("preset", PRESETS)
def test_the_written_configuration_reads_back(tmp_path: Path, preset: str) -> None:
    settings = configure(preset, "fb15k-237", None, ["training.seed=7"])
    (tmp_path / "config.toml").write_text(write_toml(settings))
    assert settings_from(read_values(tmp_path / "config.toml")) == settings
    assert isinstance(settings, Settings)
