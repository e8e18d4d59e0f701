"""The run page: data, configuration, metrics with their protocol, curves, calibration, counterfactual diagnostics."""

import json
from typing import Any

import numpy as np

from kgcf.causal.counterfactual import CounterfactualTable, diagnose
from kgcf.causal.embedding import open_space
from kgcf.causal.treatment import open_treatment
from kgcf.evaluation.metrics import SHORT_NAMES
from kgcf.prediction.blending.blend import FILE as BLEND
from kgcf.prediction.blending.blend import read_blend
from kgcf.prediction.calibration.fitting import CalibrationReport
from kgcf.prediction.calibration.record import CalibrationRecord
from kgcf.progress import Advance
from kgcf.runs.stages import TREATMENT
from kgcf.web.asking import summarise_run
from kgcf.web.models import Curve, RunReport
from kgcf.web.served_run import ServedRun

_HEADLINE = ("mrr", "hits@1", "hits@3", "hits@10", "mr")
_LOSSES = ("factual", "counterfactual", "discrepancy", "context")
_PAIRS = 2_000  # per relation, for the effects: enough for a page
TABLE, SPACE = "counterfactuals.parquet", "space.safetensors"


def report(served: ServedRun) -> RunReport:
    """What the folder of the run says, and the diagnostics once they are computed."""
    run = served.run
    facts, results = run.folder.facts(), _results(served)
    epochs, history = run.folder.history(), facts.get("history")
    return RunReport(
        summary=summarise_run(served),
        folder=run.folder.path.resolve().name,
        notes=run.data.notes,
        splits={split.name: len(split) for split in run.data.splits},
        settings=run.settings.model_dump(mode="json"),
        metrics={name: float(results[name]) for name in _HEADLINE if name in results},
        intervals={name: (found["low"], found["high"]) for name, found in results.get("intervals", {}).items()},
        parts={
            title: {name: float(found[name]) for name in _HEADLINE} for title, found in results.get("parts", {}).items()
        },
        memory=read_blend(run.folder.file(BLEND)).reason if run.folder.sealed(BLEND) else "",
        by_relation=_by_relation(results),
        protocol={name: value for name, value in results.get("protocol", {}).items() if not isinstance(value, dict)},
        learning=_curve("validation MRR", epochs, "validation_mrr"),
        best_epoch=int(history["best_epoch"]) if isinstance(history, dict) and len(run.data.valid) else None,
        losses=tuple(curve for name in _LOSSES if (curve := _curve(name, epochs, name)).points),
        calibration=_calibration_sentence(run.calibration),
        calibration_figures=_calibration_figures(run.calibration),
        reliability=_reliability(run.calibration),
        diagnosing=served.diagnosing.progress,
        diagnostics=served.diagnostics,
    )


def can_diagnose(served: ServedRun) -> bool:
    """Whether the run keeps what the diagnostics are about: treatment, entity space and substitutes."""
    return all(served.run.folder.file(name).is_file() for name in (TREATMENT, TABLE, SPACE))


def start_diagnosing(served: ServedRun) -> None:
    """Compute the diagnostics of treatment and matching in the background, once."""
    data, folder = served.run.data, served.run.folder
    relations = len(np.unique(data.graph.triples[:, 1]))

    def work(advance: Advance) -> str:
        table = CounterfactualTable.from_parquet(folder.file(TABLE))
        treatment = open_treatment(folder.file(TREATMENT), data.graph)
        space = open_space(folder.file(SPACE))
        found = diagnose(data, table, space, treatment, 0, _PAIRS, threads=1, advance=advance)
        served.diagnostics = found.to_json()
        return "Done."

    served.diagnosing.start("Measuring treatment and matching", 3 * relations, work)


def _results(served: ServedRun) -> dict[str, Any]:
    """results.json where it is of the test split; empty else."""
    path = served.run.folder.file("results.json")
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found if found.get("protocol", {}).get("split") == "test" else {}


def _by_relation(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Headline metrics of both sides by relation, the most asked first."""
    rows = {label: sides["both"] for label, sides in results.get("per_relation", {}).items()}
    ordered = sorted(rows.items(), key=lambda item: -item[1]["count"])
    return {
        label: {"count": row["count"], **{name: row[SHORT_NAMES[name]] for name in _HEADLINE}} for label, row in ordered
    }


def _curve(title: str, epochs: list[dict[str, float]], name: str) -> Curve:
    return Curve(title, tuple((float(entry["epoch"]), float(entry[name])) for entry in epochs if name in entry))


def _calibration_sentence(record: CalibrationRecord | None) -> str:
    if record is None:
        return "The run has no calibration: probabilities are the plain sigmoid of the logit."
    return record.calibration.reason


def _tested(record: CalibrationRecord | None) -> CalibrationReport | None:
    return None if record is None else record.test


def _calibration_figures(record: CalibrationRecord | None) -> dict[str, float]:
    tested = _tested(record)
    if record is None or tested is None:
        return {}
    before, after = tested.reliability["sigmoid"], tested.reliability[record.calibration.method]
    return {
        "answers": float(tested.answers),
        "base rate": tested.base_rate,
        "ECE, sigmoid": before.ece,
        "ECE, calibrated": after.ece,
        "Brier, sigmoid": before.brier,
        "Brier, calibrated": after.brier,
    }


def _reliability(record: CalibrationRecord | None) -> tuple[Curve, ...]:
    """Said against true on test, before and after the calibration."""
    tested = _tested(record)
    if record is None or tested is None:
        return ()
    names = dict.fromkeys(("sigmoid", record.calibration.method))
    return tuple(
        Curve(
            "calibrated" if name != "sigmoid" else "sigmoid",
            tuple((b.probability, b.rate) for b in tested.reliability[name].bins),
            tuple(float(b.count) for b in tested.reliability[name].bins),
        )
        for name in names
    )
