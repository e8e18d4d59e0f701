"""What a result says about the run that it was measured on: every setting, the seeds, and how long it was trained."""

from dataclasses import asdict

from kgcf.config import Settings, seeds_of
from kgcf.data.dataset import Dataset
from kgcf.prediction.blending.blend import FILE as BLEND
from kgcf.prediction.blending.blend import read_blend
from kgcf.prediction.calibration.protocol import describe_validation
from kgcf.runs.ensemble import FILE as ENSEMBLE
from kgcf.runs.ensemble import read_ensemble
from kgcf.runs.folder import RunFolder

_TRAINED = ("queries", "unreached", "impossible")  # of an epoch: contributed, and left out for two reasons
_SECONDS = ("seconds", "validation_seconds")


def describe_run(folder: RunFolder, data: Dataset, settings: Settings, device: str) -> dict[str, object]:
    """The part of a protocol that tells how the model was made; `training` has the commit and machine that made it."""
    facts, epochs, survey = folder.facts(), folder.history(), folder.survey()
    asked = sum(epoch.get(name, 0.0) for epoch in epochs for name in _TRAINED)
    return {
        "preset": facts["preset"],
        "validation": describe_validation(data),
        "time": None if survey is None else {name: survey[name] for name in ("seconds", "choice")},
        "device": device,
        "settings": settings.model_dump(mode="json"),
        "seeds": seeds_of(settings),
        "training_seed": settings.training.seed,
        "epochs": settings.training.epochs,
        "queries_trained": int(sum(epoch.get("queries", 0.0) for epoch in epochs)),
        "queries_asked": int(asked),
        "passes": int(sum(epoch.get("passes", 0.0) for epoch in epochs)),
        "sweeps": round(asked / max(len(data.graph), 1), 3),  # how often a train triple was asked, on average
        "training_seconds": round(sum(epoch.get(name, 0.0) for epoch in epochs for name in _SECONDS), 3),
        "training": facts.get("history", {}),
        "blend": None if not folder.file(ENSEMBLE).is_file() else asdict(read_ensemble(folder.path)),
        "memory": None if not folder.file(BLEND).is_file() else asdict(read_blend(folder.file(BLEND))),
    }
