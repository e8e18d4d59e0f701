"""The calibration of a run: fitted on validation, reported on test, kept in `calibration.json` with its protocol."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kgcf.data.dataset import Dataset, Split
from kgcf.errors import StorageError
from kgcf.evaluation.calibration import (
    FOLDS,
    LEAST_ANSWERS,
    Calibration,
    CalibrationReport,
    fit_calibration,
    report_calibration,
)
from kgcf.evaluation.calibration_view import plot_reliability
from kgcf.evaluation.reliability import BINS
from kgcf.model import KGCF
from kgcf.prediction.best import collect_best
from kgcf.prediction.observed import ObservedGraph
from kgcf.progress import Advance, silent
from kgcf.provenance import provenance
from kgcf.runs import RunFolder
from kgcf.storage import write_json

FILE = "calibration.json"
PLOT = "reliability.png"
TOP = 10
LIMIT = 1000  # triples of a split that are asked about: 20,000 answers at most
Bind = Callable[[Split], ObservedGraph]


@dataclass(frozen=True)
class CalibrationRecord:
    """A calibration with what it is worth; `key` is the hash of the weights it belongs to."""

    calibration: Calibration
    valid: CalibrationReport | None  # the answers it was fitted on: not evidence, and None without a validation split
    test: CalibrationReport | None  # None until it was asked for, or without a test split
    protocol: dict[str, Any]
    key: str

    def drawn_with(self, limit: int | None, seed: int) -> bool:
        """Whether it is about these triples of the splits."""
        return (self.protocol["limit"], self.protocol["seed"]) == (limit, seed)

    def to_json(self) -> dict[str, Any]:
        """Plain values: the method and its parameters at the top, then the reports."""
        return {
            **self.calibration.to_json(),
            "valid": None if self.valid is None else self.valid.to_json(),
            "test": None if self.test is None else self.test.to_json(),
            "protocol": self.protocol,
            "weights_sha256": self.key,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "CalibrationRecord":
        """What `to_json` wrote."""
        valid, test = (
            None if values[split] is None else CalibrationReport.from_json(values[split]) for split in ("valid", "test")
        )
        return cls(Calibration.from_json(values), valid, test, dict(values["protocol"]), str(values["weights_sha256"]))


@dataclass(frozen=True)
class Request:
    """What is wanted of a calibration."""

    test: bool = True  # also measure it on test
    limit: int | None = LIMIT  # triples of a split to ask about, drawn at random; None: all
    seed: int = 0
    save: bool = True  # keep it in the run folder


def calibrate_run(
    folder: RunFolder, model: KGCF, data: Dataset, bind: Bind, wanted: Request, advance: Advance = silent
) -> CalibrationRecord:
    """The calibration of a run as wanted; what the folder has for these weights and triples is not done again."""
    key, path = weights_key(model), folder.file(FILE)
    record = read_record(path, key)
    if record is None or not record.drawn_with(wanted.limit, wanted.seed):
        record = calibrate(bind, data, key, wanted.limit, wanted.seed, advance)
    if wanted.test and record.test is None:
        record = with_test(record, bind, data, advance)
    if wanted.save:
        write_json(path, record.to_json())
        if record.test is not None:
            plot_reliability(record.test, record.calibration.method, folder.file(PLOT))
    return record


def calibrate(
    bind: Bind, data: Dataset, key: str, limit: int | None = LIMIT, seed: int = 0, advance: Advance = silent
) -> CalibrationRecord:
    """Fit on the best answers of (at most `limit`) validation triples; the test split is not looked at."""
    answers = collect_best(bind(data.valid), data.valid, TOP, limit, seed, advance)
    calibration = fit_calibration(answers, seed)
    report = report_calibration(calibration, answers, "valid")
    return CalibrationRecord(calibration, report, None, describe(data, limit, seed), key)


def with_test(record: CalibrationRecord, bind: Bind, data: Dataset, advance: Advance = silent) -> CalibrationRecord:
    """The same calibration, measured on the best answers of as many test triples."""
    limit, seed = record.protocol["limit"], record.protocol["seed"]
    answers = collect_best(bind(data.test), data.test, TOP, limit, seed, advance)
    return replace(record, test=report_calibration(record.calibration, answers, "test"))


def describe(data: Dataset, limit: int | None, seed: int) -> dict[str, Any]:
    """Everything that must be equal for two calibrations to be comparable, and what a probability means."""
    return {
        "dataset": data.name,
        "setting": "inductive" if data.inductive else "transductive",
        "fitted": "on validation, which also selects the model",
        "reported": "on test, with the test split's own observed graph",
        "triples": "all of a split" if limit is None else f"at most {limit} of a split, drawn at random",
        "limit": limit,
        "seed": seed,
        "questions": "both sides; a question that several triples ask is asked once",
        "answers": f"the {TOP} best of each question; answers in the observed train graph are left out",
        "label": "known in any split of the graph asked about",
        "unreached": "one probability for all answers that no path reaches; no reached answer gets less",
        "before": "the sigmoid of the logit",
        "ece": f"{BINS} bins of equal mass; equal probabilities are not divided",
        "chosen": f"by Brier score in {FOLDS}-fold cross-validation over validation questions",
        "needs": f"{LEAST_ANSWERS} reached validation answers, true and false ones; else the sigmoid stays",
        "meaning": "how often such an answer is a known truth, given that the question has one that is not observed; "
        "true answers that nobody wrote down count as false",
        **provenance(),
    }


def weights_key(model: KGCF) -> str:
    """sha256 of a model's weights: a calibration is good for these only."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        digest.update(name.encode())
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def read_record(path: Path, key: str) -> CalibrationRecord | None:
    """Read `calibration.json`; None where there is none, or where it belongs to other weights."""
    if not path.is_file():
        return None
    try:
        record = CalibrationRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StorageError) as error:
        raise StorageError(
            f"{path} is damaged ({type(error).__name__}: {error}). Delete it; `kgcf evaluate` writes it again."
        ) from error
    return record if record.key == key else None
