"""Evaluation results as tables for people."""

from collections.abc import Mapping

from rich.console import Group
from rich.table import Table

from kgcf.data.vocabulary import Vocabulary
from kgcf.evaluation.metrics import SHORT_NAMES
from kgcf.evaluation.results import Evaluation, Metrics
from kgcf.prediction.calibration.plots import calibration_table
from kgcf.prediction.calibration.record import CalibrationRecord
from kgcf.screen import Screen, cell

_SHOWN = ("mrr", "mr", "hits@1", "hits@3", "hits@10", "amri")


def result_rows(result: Evaluation) -> dict[str, Evaluation]:
    """The rows of one result: its parts alone, where it has parts, and the whole."""
    model = str(result.protocol["model"])
    if not result.parts:
        return {model: result}
    return {**{f"{model}, {name}": part for name, part in result.parts.items()}, f"{model}, {result.together}": result}


def evaluation_table(results: Mapping[str, Evaluation]) -> Table:
    """One row per model, the headline numbers with their 95 % interval of MRR."""
    first = next(iter(results.values())).protocol
    title = f"{first['dataset']}, {first['split']}: {first['triples']:,} triples, both sides, filtered, realistic ties"
    table = Table(title=cell(title), title_justify="left", title_style="bold")
    table.add_column("model")
    for name in ("MRR", "95 % interval", "MR", "H@1", "H@3", "H@10", "AMRI"):
        table.add_column(name, justify="right")
    for model, result in results.items():
        values = [_cell(name, result[name]) for name in _SHOWN]
        interval = result.intervals["mrr"]
        values.insert(1, f"{interval.low:.3f} – {interval.high:.3f}")
        table.add_row(cell(model), *values)
    return table


def breakdown_tables(result: Evaluation, relations: Vocabulary, most: int = 15) -> Group:
    """Tie policies and sides, relation categories, and the relations with most queries."""
    by_side = Table(title="by side and tie policy", title_justify="left")
    by_category = Table(title="by relation category (realistic)", title_justify="left")
    shown = sorted(result.per_relation.items(), key=lambda item: -item[1]["both"]["count"])
    more = f", {most} of {len(shown)} by number of queries" if len(shown) > most else ""
    by_relation = Table(title=f"by relation (realistic{more})", title_justify="left")
    for table, first in ((by_side, "side"), (by_category, "category"), (by_relation, "relation")):
        table.add_column(first)
        for name in ("queries", *_SHOWN):
            table.add_column(name, justify="right")
    for side, policies in result.metrics.items():
        for policy, metrics in policies.items():
            by_side.add_row(f"{side}, {policy}", *_row(metrics))
    for category, sides in result.per_category.items():
        for side, metrics in sides.items():
            by_category.add_row(f"{category}, {side}", *_row(metrics))
    for label, sides in shown[:most]:
        by_relation.add_row(cell(relations.shown(relations.id(label))), *_row(sides["both"]))
    return Group(by_side, by_category, by_relation)


def show_calibration(record: CalibrationRecord) -> None:
    """What calibration does on test, and why this method was chosen."""
    screen = Screen(wrap=False)
    method = record.calibration.method
    reports = [report for report in (record.test, record.test_unshared) if report is not None]
    if reports:
        screen.print(calibration_table([(str(record.protocol["dataset"]), method, report) for report in reports]))
        screen.print("unshared: test questions that share no (head, relation) with a question of the fit.", style="dim")
    screen.print(cell(f"Calibration on validation: {record.calibration.reason}", "dim"))
    screen.print(cell(f"Completed links on validation: {record.completion.reason}", "dim"))


def _row(metrics: Metrics) -> list[str]:
    return [f"{metrics['count']:,.0f}"] + [_cell(name, metrics[SHORT_NAMES[name]]) for name in _SHOWN]


def _cell(name: str, value: float) -> str:
    return f"{value:,.1f}" if name == "mr" else f"{value:.3f}"
