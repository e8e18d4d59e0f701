"""An explanation for people: in sentences with coloured paths, or in detail with a table of paths."""

from rich.table import Table
from rich.text import Text

from kgcf.explanation import words, words_in_detail
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.named_paths import NamedPath
from kgcf.screen import Screen, cell


def print_explanation(screen: Screen, explanation: Explanation, detail: bool = False) -> None:
    """Why, for people; in `detail` everything that is known."""
    if detail:
        _print_detail(screen, explanation)
        return
    for line in words.answer_sentences(explanation):
        screen.print(cell(line, "bold"))
    if explanation.reasons:
        screen.print("Because", style="bold")
        screen.print(reason_table(explanation))
    parts = (words.missing_sentences, words.carried_sentences)
    for line in (line for part in parts for line in part(explanation)):
        screen.print(cell(line))
    for path in explanation.opposed:
        screen.print(Text.assemble("Speaking against it: ", path_text(path), cell(words.without_sentence(path), "dim")))
    last = (words.pair_sentences, words_in_detail.beside_sentences)
    for line in (*(line for part in last for line in part(explanation)), words.sure_sentence(explanation)):
        screen.print(cell(line))


def reason_table(explanation: Explanation) -> Table:
    """The paths that speak for the triple: the probability without each, without all so far, and on it alone."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("")
    for title in ("without it", "and those above", "alone"):
        table.add_column(title, justify="right")
    table.add_column("path", overflow="fold")
    for number, path in words.numbered_reasons(explanation):
        figures = ["", "", ""]
        if path.effect is not None:
            found = (path.effect.without, path.effect.together, path.effect.alone)
            figures = [words.chance(outcome.probability) for outcome in found]
        table.add_row(str(number), *figures, path_text(path))
    return table


def _print_detail(screen: Screen, explanation: Explanation) -> None:
    for line in words_in_detail.answer_sentences(explanation):
        screen.print(cell(line, "bold"))
    if explanation.paths or explanation.against:
        screen.print(path_table(explanation))
    parts = (
        words_in_detail.missing_path_sentences,
        words_in_detail.counterfactual_sentences,
        words_in_detail.carried_sentences,
        words_in_detail.deletion_sentences,
        words_in_detail.beside_sentences,
    )
    for line in (line for part in parts for line in part(explanation)):
        screen.print(cell(line))


def path_table(explanation: Explanation) -> Table:
    """The paths with their figures; those that speak against the triple at the end."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    for title in ("drop", "alone", "weight"):
        table.add_column(title, justify="right")
    title = "path" if explanation.counterfactual is None else "path (each edge with its T^F/T^CF)"
    table.add_column(title, overflow="fold")
    named = [*((str(number), path) for number, path in enumerate(explanation.paths, start=1))]
    for number, path in [*named, *(("against", path) for path in explanation.against)]:
        drop, alone = (
            ("", "") if path.effect is None else (f"{path.effect.drop:+.3f}", f"{path.effect.alone.logit:+.3f}")
        )
        table.add_row(number, drop, alone, f"{path.weight:+.4f}", path_text(path, treatments=True))
    return table


def path_text(path: NamedPath, treatments: bool = False) -> Text:
    """A path on one line; relations are coloured, treatments dim."""
    line = cell(path.edges[0].head.shown)
    for edge in path.edges:
        line.append_text(Text.assemble(" ", cell(edge.arrow, "cyan"), " ", cell(edge.tail.shown)))
        if treatments and edge.factual_treatment is not None:
            line.append(f" {int(edge.factual_treatment)}/{int(bool(edge.counterfactual_treatment))}", "dim")
    return line
