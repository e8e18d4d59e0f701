"""The diagnostics as tables for people."""

from rich.console import Group, RenderableType
from rich.text import Text

from kgcf.causal.counterfactual.diagnostics import Diagnostics, MatchSummary
from kgcf.causal.counterfactual.effects import Effect
from kgcf.cli.tables import DataTable, report_table


def diagnostics_tables(diagnostics: Diagnostics, relations: int) -> Group:
    """Everything `kgcf counterfactuals` prints; `relations` is how many relations to list."""
    parts: list[RenderableType] = [_shares(diagnostics), _matches(diagnostics), _effects(diagnostics)]
    if relations and diagnostics.relations:
        parts.append(_relations(diagnostics, relations))
    spaced = [item for part in parts for item in (part, Text())]
    return Group(*spaced[:-1])


def _shares(diagnostics: Diagnostics) -> DataTable:
    shares = diagnostics.shares
    title = f"share with T = 1: the same neighbourhood role, by {diagnostics.method}"
    table = report_table(title, ("", "positives", "random negatives"))
    table.add_row("train, full graph", _number(shares.train), _number(shares.train_negatives))
    left_out = _number(shares.train_left_out), _number(shares.train_negatives_left_out)
    table.add_row(f"train, {diagnostics.left_out} left out", *left_out)
    table.add_row("valid", _number(shares.valid), _number(shares.valid_negatives))
    table.caption = "A first row far above the third: the edge to be predicted makes its own treatment."
    return table


def _matches(diagnostics: Diagnostics) -> DataTable:
    matches = diagnostics.matches
    table = report_table(f"counterfactuals of the train triples, candidates {diagnostics.candidates}", ("", ""))
    table.add_row("triples", f"{matches.triples:,}")
    table.add_row("matched", f"{matches.matched:,} ({_share(matches)})")
    distances = " / ".join(_number(matches.distance(quantile)) for quantile in (0.05, 0.25, 0.5, 0.75, 0.95))
    table.add_row("distance at 5 / 25 / 50 / 75 / 95 %", distances)
    table.add_row("P(A^CF = 1 | T^CF = 0)", _number(matches.outcome_untreated))
    table.add_row("P(A^CF = 1 | T^CF = 1)", _number(matches.outcome_treated))
    table.caption = diagnostics.note
    return table


def _effects(diagnostics: Diagnostics) -> DataTable:
    effects = diagnostics.effects
    left_out = "own links" if diagnostics.remove == "pair" else "own edges"
    title = f"average treatment effect, observed pairs, {left_out} left out"
    table = report_table(title, ("", "ATE", "error", "pairs", "is it zero?"), first_to_go=("pairs", "error"))
    named = {"all relations": effects.effect, "placebo: T shuffled": effects.shuffled_treatment}
    for name, effect in {**named, "placebo: labels permuted": effects.permuted_labels}.items():
        shown = {None: "", True: "zero within 3 errors", False: "not zero"}[effect.vanishes]
        row = (_signed(effect.estimate), _number(effect.standard_error), f"{effect.pairs:,} of {effect.drawn:,}")
        table.add_row(name, *row, shown)
    table.caption = "Errors count pairs that share an entity as dependent. Placebos should be zero within 3 errors."
    return table


def _relations(diagnostics: Diagnostics, count: int) -> Group:
    shown = diagnostics.relations[:count]
    whole = len(shown) == len(diagnostics.relations)
    title = "by relation" if whole else f"by relation, {len(shown)} of {len(diagnostics.relations)}"
    matches = report_table(
        title,
        ("", "triples", "T = 1", "matched", "distance", "A^CF | 0", "A^CF | 1"),
        first_to_go=("triples", "distance", "T = 1", "matched"),
    )
    effects = report_table(
        f"effects {title}",
        ("", "ATE", "error", "T shuffled", "labels permuted"),
        first_to_go=("labels permuted", "T shuffled"),
    )
    for part in shown:
        summary, effect = part.matches, part.effects.effect
        figures = (summary.treated, summary.distance(0.5), summary.outcome_untreated, summary.outcome_treated)
        treated, distance, untreated_outcome, treated_outcome = map(_number, figures)
        row = (f"{summary.triples:,}", treated, _share(summary), distance, untreated_outcome, treated_outcome)
        matches.add_row(part.name, *row)
        placebos = (part.effects.shuffled_treatment, part.effects.permuted_labels)
        row_of_effects = (_signed(effect.estimate), _number(effect.standard_error), *map(_in_errors, placebos))
        effects.add_row(part.name, *row_of_effects)
    matches.caption = "distance: median; A^CF | T: share of the substitutes with treatment T that are known triples"
    effects.caption = "placebos: in standard errors, beyond 3 marked !"
    return Group(matches, Text(), effects)


def _in_errors(effect: Effect) -> str:
    if effect.estimate is None or not effect.standard_error:
        return "–" if effect.estimate is None or effect.standard_error is None else "0.0"
    return f"{effect.estimate / effect.standard_error:+.1f}" + ("" if effect.vanishes else " !")


def _share(matches: MatchSummary) -> str:
    return f"{matches.matched / matches.triples:.1%}" if matches.triples else "–"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"
