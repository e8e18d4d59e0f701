"""Evaluation results as tables for people."""

from collections.abc import Mapping, Sequence

from rich.console import Group

from kgcf.cli.tables import DataTable, report_table
from kgcf.data.vocabulary import Vocabulary
from kgcf.evaluation.metrics import SHORT_NAMES
from kgcf.evaluation.results import Evaluation, Metrics
from kgcf.prediction.calibration.fitting import CalibrationReport
from kgcf.prediction.calibration.record import CalibrationRecord
from kgcf.screen import Screen, cell

_SHOWN = ("mrr", "mr", "hits@1", "hits@3", "hits@10", "amri")
_FIRST_TO_GO = ("amri", "hits@3", "mr", "hits@1", "queries")


def result_rows(result: Evaluation) -> dict[str, Evaluation]:
    """The rows of one result: its parts alone, where it has parts, and the whole."""
    model = str(result.protocol["model"])
    if not result.parts:
        return {model: result}
    return {**{f"{model}, {name}": part for name, part in result.parts.items()}, f"{model}, {result.together}": result}


def evaluation_table(results: Mapping[str, Evaluation]) -> DataTable:
    """One row per model, the headline numbers with their 95 % interval of MRR."""
    first = next(iter(results.values())).protocol
    title = f"{first['dataset']}, {first['split']}: {first['triples']:,} triples, both sides, filtered, realistic ties"
    titles = ("model", "MRR", "95 % interval", "MR", "H@1", "H@3", "H@10", "AMRI")
    table = report_table(title, titles, first_to_go=("AMRI", "H@3", "MR", "95 % interval", "H@1"))
    for model, result in results.items():
        values = [_cell(name, result[name]) for name in _SHOWN]
        interval = result.intervals["mrr"]
        values.insert(1, f"{interval.low:.3f} – {interval.high:.3f}")
        table.add_row(model, *values)
    return table


def breakdown_tables(result: Evaluation, relations: Vocabulary, most: int = 15) -> Group:
    """Tie policies and sides, relation categories, and the relations with most queries."""
    shown = sorted(result.per_relation.items(), key=lambda item: -item[1]["both"]["count"])
    more = f", {most} of {len(shown)} by number of queries" if len(shown) > most else ""
    by_side = _breakdown("by side and tie policy", "side")
    by_category = _breakdown("by relation category (realistic)", "category")
    by_relation = _breakdown(f"by relation (realistic{more})", "relation")
    for side, policies in result.metrics.items():
        for policy, metrics in policies.items():
            by_side.add_row(f"{side}, {policy}", *_row(metrics))
    for category, sides in result.per_category.items():
        for side, metrics in sides.items():
            by_category.add_row(f"{category}, {side}", *_row(metrics))
    for label, sides in shown[:most]:
        by_relation.add_row(relations.shown(relations.id(label)), *_row(sides["both"]))
    return Group(by_side, by_category, by_relation)


def calibration_table(reports: Sequence[tuple[str, str, CalibrationReport]]) -> DataTable:
    """One row per (name, method in use, report): before is the sigmoid, after is the method in use."""
    title = "calibration: the ten best new answers of each question, sigmoid → calibrated"
    titles = ("run", "questions", "method", "answers", "base rate", "ECE", "Brier")
    table = report_table(title, titles, first_to_go=("Brier", "method", "answers", "base rate"))
    for name, method, report in reports:
        before, after = report.reliability["sigmoid"], report.reliability[method]
        changes = (f"{before.ece:.4f} → {after.ece:.4f}", f"{before.brier:.4f} → {after.brier:.4f}")
        table.add_row(name, report.split, method, f"{report.answers:,}", f"{report.base_rate:.3f}", *changes)
    return table


def show_calibration(record: CalibrationRecord) -> None:
    """What calibration does on test, and why this method was chosen."""
    screen, lines = Screen(), Screen(wrap=False)
    method = record.calibration.method
    reports = [report for report in (record.test, record.test_unshared) if report is not None]
    if reports:
        screen.print(calibration_table([(str(record.protocol["dataset"]), method, report) for report in reports]))
        lines.print("unshared: test questions that share no (head, relation) with a question of the fit.", style="dim")
    lines.print(cell(f"Calibration on validation: {record.calibration.reason}", "dim"))
    lines.print(cell(f"Completed links on validation: {record.completion.reason}", "dim"))


def _breakdown(title: str, first: str) -> DataTable:
    return report_table(title, (first, "queries", *_SHOWN), first_to_go=_FIRST_TO_GO)


def _row(metrics: Metrics) -> list[str]:
    return [f"{metrics['count']:,.0f}"] + [_cell(name, metrics[SHORT_NAMES[name]]) for name in _SHOWN]


def _cell(name: str, value: float) -> str:
    return f"{value:,.1f}" if name == "mr" else f"{value:.3f}"
