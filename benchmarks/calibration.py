"""What probabilities are worth on the test split of runs: of answers to questions, and of completed links.

Run: python benchmarks/calibration.py RUN [RUN …] [--limit 1000] [--output calibration.json] [--plots FOLDER]
Everything is fitted on validation, as after training, and measured on test. The runs are not changed.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from kgcf.cli.evaluation_tables import calibration_table
from kgcf.data.graph import KnowledgeGraph
from kgcf.prediction.calibration.calibrate import LIMIT
from kgcf.prediction.calibration.completed_links import uncalibrated
from kgcf.prediction.calibration.fitting import METHODS
from kgcf.prediction.calibration.plots import plot_reliability
from kgcf.prediction.calibration.record import CalibrationRecord
from kgcf.prediction.calibration.reliability import BINS, measure
from kgcf.prediction.completion import plan_completion, rank_links
from kgcf.runs.run import Run
from kgcf.storage import write_json

TOPS = (10, 100, 1000)
PROTOCOL = {
    "task": "complete the graph with the candidates seen; said: mean probability of the first links; true: the share "
    "of them that test has, closed world",
    "missing test": "observed: train and valid. In the fit, test was missing besides validation and its truths counted "
    "as false, so it says about r / (1 + r) where a share of r is true, if valid and test are of one size",
    "like the fit": "observed: train. Valid is missing besides test and counts as false, as test did in the fit",
    "question": "observed: train and valid, ranked by logit, with the probability of an answer whose question has a "
    "missing answer: what `complete` said before links had a calibration of their own",
    "ece": f"of the first {TOPS[-1]:,} links, {BINS} bins of equal mass",
}


def main() -> None:
    """Calibrate every run, print the tables, write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=LIMIT, help="triples of a split, questions of a completion")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="write every calibration with its protocol as JSON")
    parser.add_argument("--plots", type=Path, help="folder for reliability plots, one SVG per run")
    given = parser.parse_args()
    found: dict[str, CalibrationRecord] = {}
    completed: dict[str, dict[str, Any]] = {}
    trained: dict[str, Any] = {}
    for path in given.runs:
        run = Run.open(path)
        found[path.name] = record = run.calibrate(limit=given.limit, seed=given.seed, save=False)
        completed[path.name] = measure_completion(run, record)
        trained[path.name] = run.settings.training.model_dump(mode="json")
        if given.plots is not None and record.test is not None:
            plot_reliability(record.test, record.calibration.method, given.plots / f"{path.name}.svg")
    show(found, completed)
    if given.output is not None:
        rows = {
            name: {**record.to_json(), "completed": completed[name], "training": trained[name]}
            for name, record in found.items()
        }
        write_json(given.output, {"protocol of completed links": PROTOCOL, **rows})


def measure_completion(run: Run, record: CalibrationRecord) -> dict[str, Any]:
    """Said and true of the links that complete the test split's graph."""
    task = run.data.test
    situations = {"missing test": task.known.without(task.queries), "like the fit": task.observed}
    result: dict[str, Any] = {}
    for name, graph in situations.items():
        observed = run.bind(graph, task.entities)
        plan = plan_completion(observed, None, every_entity=False)
        links = rank_links(observed, plan, record.completion, TOPS[-1])
        result[name] = said_and_true(links.probabilities, links.triples, task.queries, graph)
        if name == "missing test":
            links = rank_links(observed, plan, uncalibrated("seen"), TOPS[-1])
            everywhere = np.ones(len(links.logits), dtype=bool)
            said = record.calibration.probabilities(links.logits, everywhere, links.triples[:, 1])
            result["question"] = said_and_true(said, links.triples, task.queries, graph)
    return result


def said_and_true(
    said: NDArray[np.float64], triples: NDArray[np.int64], facts: NDArray[np.int32], graph: KnowledgeGraph
) -> dict[str, Any]:
    """Mean probability and share of true ones of the first links, and what all of them are worth."""
    true = KnowledgeGraph.build(facts, graph.entity_count, graph.relation_count).contains(triples)
    tops = {str(top): {"said": float(said[:top].mean()), "true": float(true[:top].mean())} for top in TOPS}
    worth = measure(said, true)
    return {"links": len(said), "top": tops, "ece": worth.ece, "brier": worth.brier}


def show(found: dict[str, CalibrationRecord], completed: dict[str, dict[str, Any]]) -> None:
    """Each method of each run, which one the run uses and why, then completed links."""
    console = Console(highlight=False, soft_wrap=True)
    rows = [
        (name, method, report)
        for name, record in found.items()
        for report in (record.test, record.test_unshared)
        if report is not None
        for method in METHODS
        if method in record.calibration.curves
    ]
    if rows:
        console.print(calibration_table(rows))
    for name, record in found.items():
        measured = "" if record.test is not None else " There are no test answers."
        console.print(f"{name} uses {record.calibration.method}. {record.calibration.reason}{measured}")
        console.print(f"{name}, completed links: {record.completion.reason}")
    table = Table("run", "situation", *(f"top {top:,}: said / true" for top in TOPS), "ECE", box=None)
    for name, situations in completed.items():
        for situation, worth in situations.items():
            tops = [f"{v['said']:.3f} / {v['true']:.3f}" for v in worth["top"].values()]
            table.add_row(name, situation, *tops, f"{worth['ece']:.4f}")
    console.print(table)


if __name__ == "__main__":
    main()
