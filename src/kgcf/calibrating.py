"""The calibration of a run: fitted on validation, reported on test, kept in `calibration.json` with its protocol.

Two are fitted: of answers to a question (`predict`, `explain`) and of links that completing the graph proposes
(`complete`). Neither knows anything of test: another test file gives the same numbers, bit for bit.
"""

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kgcf.data.dataset import Dataset, Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
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
from kgcf.evaluation.completed import MEANING, CompletionCalibration, Scope, fit_completion
from kgcf.evaluation.reliability import BINS
from kgcf.model import KGCF
from kgcf.prediction.best import collect_best, drawn_questions
from kgcf.prediction.observed import ObservedGraph
from kgcf.prediction.proposals import BEST, OTHERS, collect_proposals
from kgcf.progress import Advance, silent
from kgcf.provenance import provenance
from kgcf.runs import RunFolder
from kgcf.storage import write_json

FILE = "calibration.json"
FORMAT = 2  # 1 was fitted with test truths among its labels
PLOT = "reliability.png"
TOP = 10
LIMIT = 1000  # triples of a split that are asked about: 20,000 answers at most; and questions of a completion
Bind = Callable[[Split], ObservedGraph]


@dataclass(frozen=True)
class CalibrationRecord:
    """A calibration with what it is worth; `key` is the hash of the weights it belongs to."""

    calibration: Calibration
    valid: CalibrationReport | None  # the answers it was fitted on: not evidence, and None without a validation split
    test: CalibrationReport | None  # None until it was asked for, or without a test split
    test_apart: CalibrationReport | None  # the test questions that share no (head, relation) with those of the fit
    protocol: dict[str, Any]
    key: str
    completion: CompletionCalibration  # of links between entities seen on their sides of the relation

    def drawn_with(self, limit: int | None, seed: int) -> bool:
        """Whether it is about these triples of the splits."""
        return (self.protocol["limit"], self.protocol["seed"]) == (limit, seed)

    def to_json(self) -> dict[str, Any]:
        """Plain values: the method and its parameters at the top, then the reports."""
        return {
            **self.calibration.to_json(),
            "valid": None if self.valid is None else self.valid.to_json(),
            "test": None if self.test is None else self.test.to_json(),
            "test_apart": None if self.test_apart is None else self.test_apart.to_json(),
            "completion": self.completion.to_json(),
            "protocol": self.protocol,
            "weights_sha256": self.key,
            "format": FORMAT,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "CalibrationRecord":
        """What `to_json` wrote."""
        valid, test, apart = (
            None if values[name] is None else CalibrationReport.from_json(values[name])
            for name in ("valid", "test", "test_apart")
        )
        completion = CompletionCalibration.from_json(values["completion"])
        fitted, protocol, key = Calibration.from_json(values), dict(values["protocol"]), str(values["weights_sha256"])
        return cls(fitted, valid, test, apart, protocol, key, completion)


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
    """Fit on the best answers of (at most `limit`) validation triples, and on as many questions of a completion."""
    task = validation_task(data)
    observed = bind(task)
    answers = collect_best(observed, task, TOP, limit, seed, advance)
    calibration = fit_calibration(answers, seed)
    report = report_calibration(calibration, answers, "valid")
    proposals = collect_proposals(observed, task.queries, "seen", limit, seed, advance)
    completion = fit_completion(proposals, "seen", seed)
    return CalibrationRecord(calibration, report, None, None, describe(data, limit, seed), key, completion)


def calibrate_completion(
    bind: Bind, data: Dataset, scope: Scope, limit: int | None = LIMIT, seed: int = 0, advance: Advance = silent
) -> CompletionCalibration:
    """Only what `complete` needs, for either kind of candidates."""
    task = validation_task(data)
    return fit_completion(collect_proposals(bind(task), task.queries, scope, limit, seed, advance), scope, seed)


def validation_task(data: Dataset) -> Split:
    """The validation task as the same data without a test file would have it.

    Entities are numbered by first appearance, so those that only test has come last. They are cut off: even
    isolated ones would be candidates, and count in the mean degree of the graph.
    """
    task = data.valid
    ends = np.concatenate([task.observed.triples, task.queries])[:, [0, 2]]
    count = int(ends.max()) + 1 if len(ends) else 0
    if count == task.observed.entity_count:
        return task
    relations = task.observed.relation_count
    observed, known = (
        KnowledgeGraph.build(graph.triples, count, relations, graph.weights) for graph in (task.observed, task.known)
    )
    labels = task.entities.labels()[:count]
    names = {label: task.entities.names[label] for label in labels if label in task.entities.names}
    return replace(task, observed=observed, known=known, entities=Vocabulary(labels, names))


def with_test(record: CalibrationRecord, bind: Bind, data: Dataset, advance: Advance = silent) -> CalibrationRecord:
    """The same calibration, measured on as many test triples: all questions, and those apart from the fit's."""
    limit, seed = record.protocol["limit"], record.protocol["seed"]
    answers = collect_best(bind(data.test), data.test, TOP, limit, seed, advance)
    apart = np.ones(len(answers), dtype=bool)
    if not data.inductive:  # else no question of test is about an entity of the fit
        asked, fitted = drawn_questions(data.test, limit, seed), drawn_questions(data.valid, limit, seed)
        width = 2 * len(data.relations)
        shared = np.isin(asked @ [width, 1], fitted @ [width, 1])  # [Q]
        apart = ~shared[answers.questions]
    return replace(
        record,
        test=report_calibration(record.calibration, answers, "test"),
        test_apart=report_calibration(record.calibration, answers.where(apart), "test, apart"),
    )


def describe(data: Dataset, limit: int | None, seed: int) -> dict[str, Any]:
    """Everything that must be equal for two calibrations to be comparable, and what a probability means."""
    return {
        "dataset": data.name,
        "setting": "inductive" if data.inductive else "transductive",
        "fitted": "on validation, which also selects the model; labels, candidates and draws know nothing of test",
        "reported": "on test, with the test split's own observed graph; apart: the questions of test that share no "
        "(head, relation) with a question of the fit",
        "triples": "all of a split" if limit is None else f"at most {limit} of a split, drawn at random",
        "limit": limit,
        "seed": seed,
        "questions": "both sides; a question that several triples ask is asked once",
        "answers": f"the {TOP} best of each question; answers in train, and on test those in valid, are left out",
        "label": "a triple of the split asked about; every other answer counts as false",
        "unreached": "one probability for all answers that no path reaches; no reached answer gets less",
        "before": "the sigmoid of the logit",
        "ece": f"{BINS} bins of equal mass; equal probabilities are not divided",
        "chosen": f"by Brier score in {FOLDS}-fold cross-validation over validation questions",
        "needs": f"{LEAST_ANSWERS} reached validation answers, true and false ones; else the sigmoid stays",
        "meaning": "how often such an answer is a fact held back, given that the question has one; true answers that "
        "nobody wrote down count as false",
        "completion": {
            "meaning": MEANING,
            "questions": "all of every relation (entities seen as its heads)"
            if limit is None
            else f"at most {limit} of all (entities seen as heads of a relation), half with a fact held back",
            "links": f"reached, new, tail seen; the {BEST} best, the true ones and {OTHERS} others of each question",
            "weights": "each link stands for those that were not looked at",
            "chosen": f"the spread of the relations' intercepts, by log loss in {FOLDS}-fold cross-validation",
        },
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


def open_record(folder: RunFolder, model: KGCF) -> CalibrationRecord | None:
    """The calibration of a run that is opened; one of an older kgcf is left alone, with a warning."""
    path = folder.file(FILE)
    record = read_record(path, weights_key(model))
    if record is None and path.is_file() and _format(json.loads(path.read_text(encoding="utf-8"))) < FORMAT:
        warnings.warn(
            f"The calibration of {folder.path} was written by an older kgcf, which let test truths into the fit; it is "
            f"not used. Probabilities of answers are plain sigmoids until you run: kgcf evaluate {folder.path}",
            stacklevel=3,
        )
    return record


def _format(values: dict[str, Any]) -> int:
    return int(values.get("format", 1))
