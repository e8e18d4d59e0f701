"""The paths of an explanation as a table for people."""

from rich.markup import escape
from rich.table import Table

from kgcf.explanation.explanation import Explanation, NamedPath


def path_table(explanation: Explanation) -> Table:
    """The paths, strongest first, with their weights."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column("weight", justify="right")
    table.add_column("path" if explanation.counterfactual is None else "path (each edge with its T^F/T^CF)")
    for number, path in enumerate(explanation.paths, start=1):
        table.add_row(str(number), f"{path.weight:+.4f}", marked(path))
    return table


def marked(path: NamedPath) -> str:
    """A path on one line in rich markup; treatments are dim."""
    parts = [escape(path.edges[0].head.name)]
    for edge in path.edges:
        parts.append(f"[cyan]{escape(edge.arrow)}[/] {escape(edge.tail.name)}")
        if edge.factual_treatment is not None:
            parts[-1] += f" [dim]{int(edge.factual_treatment)}/{int(bool(edge.counterfactual_treatment))}[/]"
    return " ".join(parts)
