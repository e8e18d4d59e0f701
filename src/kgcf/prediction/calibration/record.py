"""What is stored of a calibration: `calibration.json`, tied to the weights that it belongs to."""

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from kgcf.errors import StorageError
from kgcf.prediction.calibration.completed_links import CompletionCalibration
from kgcf.prediction.calibration.fitting import Calibration, CalibrationReport

FILE = "calibration.json"
FORMAT = 2  # 1 was fitted with test truths among its labels


@dataclass(frozen=True)
class CalibrationRecord:
    """A calibration with what it is worth; `key` is the hash of the weights it belongs to."""

    calibration: Calibration
    valid: CalibrationReport | None  # the answers it was fitted on: not evidence, and None without a validation split
    test: CalibrationReport | None  # None until it was asked for, or without a test split
    test_unshared: CalibrationReport | None  # the test questions that share no (head, relation) with those of the fit
    protocol: dict[str, Any]
    key: str
    completion: CompletionCalibration  # of links between entities seen on their sides of the relation
    paths: Calibration | None = None  # of answers in which memory has no say; None: the run has no memory
    paths_completion: CompletionCalibration | None = None  # of links that paths alone propose

    def answers_by(self, memory: bool) -> Calibration:
        """That of answers with or without memory's say."""
        return self.calibration if memory or self.paths is None else self.paths

    def links_by(self, memory: bool) -> CompletionCalibration:
        """That of completed links with or without memory's say."""
        return self.completion if memory or self.paths_completion is None else self.paths_completion

    def drawn_with(self, limit: int | None, seed: int) -> bool:
        """Whether it is about these triples of the splits."""
        return (self.protocol["limit"], self.protocol["seed"]) == (limit, seed)

    def to_json(self) -> dict[str, Any]:
        """Plain values: the method and its parameters at the top, then the reports."""
        return {
            **self.calibration.to_json(),
            "valid": None if self.valid is None else self.valid.to_json(),
            "test": None if self.test is None else self.test.to_json(),
            "test_unshared": None if self.test_unshared is None else self.test_unshared.to_json(),
            "completion": self.completion.to_json(),
            "paths": None if self.paths is None else self.paths.to_json(),
            "paths_completion": None if self.paths_completion is None else self.paths_completion.to_json(),
            "protocol": self.protocol,
            "weights_sha256": self.key,
            "format": FORMAT,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "CalibrationRecord":
        """What `to_json` wrote."""
        valid, test, separate = (
            None if values[name] is None else CalibrationReport.from_json(values[name])
            for name in ("valid", "test", "test_unshared")
        )
        paths, links = values.get("paths"), values.get("paths_completion")
        return cls(
            calibration=Calibration.from_json(values),
            valid=valid,
            test=test,
            test_unshared=separate,
            protocol=dict(values["protocol"]),
            key=str(values["weights_sha256"]),
            completion=CompletionCalibration.from_json(values["completion"]),
            paths=None if paths is None else Calibration.from_json(paths),
            paths_completion=None if links is None else CompletionCalibration.from_json(links),
        )


def weights_key(models: Sequence[nn.Module]) -> str:
    """sha256 of the weights of the models that answer together: a calibration is good for these only."""
    digest = hashlib.sha256()
    for model in models:
        for name, parameter in model.named_parameters():
            digest.update(name.encode())
            digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def read_record(path: Path, key: str) -> CalibrationRecord | None:
    """Read `calibration.json`; None where there is none, or where it is of an older kgcf or of other weights."""
    if not path.is_file():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if _format(values) < FORMAT:
            return None
        record = CalibrationRecord.from_json(values)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StorageError) as error:
        raise StorageError(
            f"{path} is damaged ({type(error).__name__}: {error}). Delete it; `kgcf evaluate` writes it again."
        ) from error
    return record if record.key == key else None


def open_record(folder: Path, models: Sequence[nn.Module]) -> CalibrationRecord | None:
    """The calibration of a run that is opened; one of an older kgcf is left alone, with a warning."""
    path = folder / FILE
    record = read_record(path, weights_key(models))
    if record is None and path.is_file() and _format(json.loads(path.read_text(encoding="utf-8"))) < FORMAT:
        warnings.warn(
            f"The calibration of {folder} was written by an older kgcf, which let test truths into the fit; it is "
            f"not used. Probabilities of answers are plain sigmoids until you run: kgcf evaluate {folder}",
            stacklevel=3,
        )
    return record


def _format(values: dict[str, Any]) -> int:
    return int(values.get("format", 1))
