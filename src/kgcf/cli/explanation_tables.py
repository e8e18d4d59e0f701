"""An explanation for people: the answer, its paths as a table, the counterfactual and the deletion check."""

from rich.table import Table
from rich.text import Text

from kgcf.explanation.explanation import Explanation
from kgcf.explanation.memory_evidence import memory_sentences, run_sentences
from kgcf.explanation.named_paths import NamedPath
from kgcf.explanation.words import (
    answer_sentences,
    counterfactual_sentences,
    deletion_sentences,
    missing_path_sentences,
)
from kgcf.screen import Screen, cell


def print_explanation(screen: Screen, explanation: Explanation, detail: bool = False) -> None:
    """The answer, its paths, the counterfactual and the deletion check, for people."""
    for line in answer_sentences(explanation, detail):
        screen.print(cell(line, "bold"))
    if explanation.paths:
        screen.print(path_table(explanation))
    for line in (*memory_sentences(explanation.memory, explanation.relation), *run_sentences(explanation.runs)):
        screen.print(cell(line))
    parts = (missing_path_sentences, counterfactual_sentences, deletion_sentences)
    for part in parts:
        for line in part(explanation):
            screen.print(cell(line))


def path_table(explanation: Explanation) -> Table:
    """The paths, strongest first, with their weights."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column("weight", justify="right")
    title = "path" if explanation.counterfactual is None else "path (each edge with its T^F/T^CF)"
    table.add_column(title, overflow="fold")
    for number, path in enumerate(explanation.paths, start=1):
        table.add_row(str(number), f"{path.weight:+.4f}", path_text(path))
    return table


def path_text(path: NamedPath) -> Text:
    """A path on one line; relations are coloured, treatments dim."""
    line = cell(path.edges[0].head.shown)
    for edge in path.edges:
        line.append_text(Text.assemble(" ", cell(edge.arrow, "cyan"), " ", cell(edge.tail.shown)))
        if edge.factual_treatment is not None:
            line.append(f" {int(edge.factual_treatment)}/{int(bool(edge.counterfactual_treatment))}", "dim")
    return line
