"""The calibration of a run: fitted on validation, reported on test.

Two are fitted: of answers to a question (`predict`, `explain`) and of links that completing the graph proposes
(`complete`). Neither knows anything of test: another test file gives the same numbers, bit for bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch import nn

from kgcf.data.dataset import Dataset, Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.calibration.completed_links import CompletionCalibration, Scope, fit_completion
from kgcf.prediction.calibration.fitting import fit_calibration, report_calibration
from kgcf.prediction.calibration.plots import plot_reliability
from kgcf.prediction.calibration.protocol import TOP, describe
from kgcf.prediction.calibration.record import FILE, CalibrationRecord, read_record, weights_key
from kgcf.prediction.calibration.sampling import collect_best, drawn_questions
from kgcf.prediction.proposals import collect_proposals
from kgcf.progress import Advance, silent
from kgcf.storage import write_json

PLOT = "reliability.png"
LIMIT = 1000  # triples of a split that are asked about: 20,000 answers at most; and questions of a completion
Bind = Callable[[Split], AnsweringGraph]


@dataclass(frozen=True)
class Request:
    """What is wanted of a calibration."""

    test: bool = True  # also measure it on test
    limit: int | None = LIMIT  # triples of a split to ask about, drawn at random; None: all
    seed: int = 0
    save: bool = True  # keep it in the run folder


def calibrate_run(
    folder: Path, models: Sequence[nn.Module], data: Dataset, bind: Bind, wanted: Request, advance: Advance = silent
) -> CalibrationRecord:
    """The calibration of a run as wanted; what the folder has for these weights and triples is not done again."""
    key, path = weights_key(models), folder / FILE
    record = read_record(path, key)
    if record is None or not record.drawn_with(wanted.limit, wanted.seed):
        record = calibrate(bind, data, key, wanted.limit, wanted.seed, advance)
    if wanted.test and record.test is None:
        record = with_test(record, bind, data, advance)
    if wanted.save:
        write_json(path, record.to_json())
        if record.test is not None:
            plot_reliability(record.test, record.calibration.method, folder / PLOT)
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
    record = CalibrationRecord(calibration, report, None, None, describe(data, limit, seed), key, completion)
    if not observed.remembers:
        return record
    alone = observed.without_memory()  # for other graphs, and for what memory does not know: logits are others there
    paths = fit_calibration(collect_best(alone, task, TOP, limit, seed), seed)
    links = fit_completion(collect_proposals(alone, task.queries, "seen", limit, seed), "seen", seed)
    return replace(record, paths=paths, paths_completion=links)


def calibrate_completion(
    bind: Bind,
    data: Dataset,
    scope: Scope,
    limit: int | None = LIMIT,
    seed: int = 0,
    advance: Advance = silent,
    *,
    memory: bool = True,
) -> CompletionCalibration:
    """Only what `complete` needs, for either kind of candidates, with or without memory's say."""
    task = validation_task(data)
    observed = bind(task) if memory else bind(task).without_memory()
    return fit_completion(collect_proposals(observed, task.queries, scope, limit, seed, advance), scope, seed)


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
    """The same calibration on as many test triples: all questions, and those that share nothing with the fit."""
    limit, seed = record.protocol["limit"], record.protocol["seed"]
    observed = bind(data.test)
    answers = collect_best(observed, data.test, TOP, limit, seed, advance)
    calibration = record.answers_by(observed.remembers)
    unshared = np.ones(len(answers), dtype=bool)
    if data.valid.observed is data.test.observed:  # else no question of test is about an entity of the fit
        asked, fitted = drawn_questions(data.test, limit, seed), drawn_questions(data.valid, limit, seed)
        width = 2 * len(data.relations)
        shared = np.isin(asked @ [width, 1], fitted @ [width, 1])  # [Q]
        unshared = ~shared[answers.questions]
    return replace(
        record,
        test=report_calibration(calibration, answers, "test"),
        test_unshared=report_calibration(calibration, answers.where(unshared), "test, unshared"),
    )
