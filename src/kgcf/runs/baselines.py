"""Runs of other models than KGCF: which model is meant, whether the data suit it, and its trainer."""

import math
import time
from pathlib import Path

import torch

from kgcf.baselines.building import check_pykeen
from kgcf.baselines.catalogue import BASELINES, find_baseline
from kgcf.baselines.settings import BaselineSettings
from kgcf.choices import CPU
from kgcf.config import PRESETS, Settings, read_values
from kgcf.data.dataset import Dataset
from kgcf.durations import spoken
from kgcf.errors import DataError, SettingsError, unknown_name
from kgcf.prediction.baseline_graph import BaselineGraph
from kgcf.prediction.calibration.calibrate import LIMIT
from kgcf.runs.any_model import new_baseline
from kgcf.runs.folder import RunFolder
from kgcf.runs.training_log import TrainingLog
from kgcf.runs.validation import divided_mrr
from kgcf.training.baseline_loop import BaselineTrainer
from kgcf.training.distributed import World
from kgcf.training.loop import Listener

KGCF_NAME = "kgcf"


def choose_model(model: str | None, preset: str, file: Path | None = None) -> tuple[str, str | None]:
    """The name that the run goes by, and the baseline that is meant, if any.

    `kgcf` and the names of presets are our own model; a configuration file of a baseline's run says which it was.
    """
    if model is None and file is not None:
        named = read_values(file).get("baseline", {}).get("model")
        model = None if named is None else str(named)
    if model is None or model == KGCF_NAME:
        return preset, None
    if model not in BASELINES and model not in PRESETS:
        raise unknown_name("model", model, model_names(), listed=40)
    if preset not in ("default", model):
        raise SettingsError(f"A preset is a way to train KGCF: leave out --preset {preset}, or --model {model}.")
    return model, (model if model in BASELINES else None)


def model_names() -> list[str]:
    """Everything that can be trained: KGCF, NBFNet and the baselines."""
    return [KGCF_NAME, "nbfnet", *BASELINES]


def check_baseline(settings: BaselineSettings, data: Dataset, world: World, device: torch.device | None = None) -> None:
    """Refuse what cannot work, before there is a folder."""
    name = settings.model
    entry = find_baseline(name)
    if not len(data.graph):
        raise DataError(f"{data.name} has no train triples, so there is nothing to learn from.")
    if world.size > 1:
        raise SettingsError(f"{name} is trained by one process: start it without torchrun.")
    if device is not None and device.type != CPU and not entry.needs_pykeen:
        raise SettingsError(f"{name} multiplies sparse matrices on the CPU: leave out --device {device}.")
    if data.inductive and not entry.inductive:
        able = ", ".join([KGCF_NAME, "nbfnet", *(other.name for other in BASELINES.values() if other.inductive)])
        raise DataError(
            f"{name} knows only the entities it was trained on, and the test graph of {data.name} has others. "
            f"Models that can answer there: {able}."
        )
    check_pykeen(name)


def within(settings: Settings, seconds: float | None, spent: float = 0.0) -> Settings:
    """The settings with a time for the whole command, of which some is spent; None: as the epochs say."""
    if seconds is None or settings.baseline is None:
        return settings
    if spent >= seconds:
        raise SettingsError(
            f"A time of {spoken(seconds)} is over before training begins: reading and loading took {spoken(spent)}. "
            f"Nothing was written. Give more, for example --time {math.ceil(2 * spent + 10)}s, or --time none for no "
            "limit."
        )
    return settings.model_copy(update={"baseline": settings.baseline.model_copy(update={"seconds": seconds})})


def baseline_trainer(
    folder: RunFolder,
    data: Dataset,
    settings: Settings,
    listener: Listener,
    device: torch.device,
    key: str,
    started: float,
) -> BaselineTrainer:
    """The trainer of a run: validation as with KGCF, checkpoints and log in the run's folder.

    Of a time that was given it has what is left of it since the command `started`.
    """
    model = new_baseline(settings, data.graph).to(device)
    training = settings.training
    memory = training.memory_gb * 1e9
    bound = BaselineGraph(model, data.graph, data.entities, data, memory=memory)

    def validate() -> float:
        return divided_mrr(bound.scorer, data, training.validate_triples, training.seed, World(), memory)

    assert settings.baseline is not None
    given = settings.baseline.seconds
    validated = min(training.validate_triples or len(data.valid), len(data.valid))
    return BaselineTrainer(
        model,
        training,
        validate if validated else None,
        folder.file("checkpoint.safetensors"),
        key,
        TrainingLog(folder, listener, leads=True),
        None if given is None else given - (time.monotonic() - started),
        following=(len(data.test) + 2 * min(len(data.valid), LIMIT)) / max(validated, 1),
    )
