"""`kgcf rules RUN`: the relation patterns that carry a relation's answers."""

from typing import TYPE_CHECKING, Annotated

import typer

from kgcf.choices import CPU
from kgcf.cli.options import DeviceOption, JsonOption, RunArgument
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, print_json

if TYPE_CHECKING:
    from kgcf.cli.tables import DataTable
    from kgcf.explanation.rules import Rule

SAMPLE = 200
NO_RULE = (
    "No rule was found: none of the answers that were explained has a path that matters. `kgcf explain` says of a "
    "single answer what it rests on."
)


def rules_command(
    run: RunArgument,
    relation: Annotated[str | None, typer.Option(help="Name or label of one relation [default: all].")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many rules.")] = 20,
    answers: Annotated[
        int, typer.Option(min=1, help="Explain so many answers of validation, drawn at random.")
    ] = SAMPLE,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    device: DeviceOption = CPU,
    as_json: JsonOption = False,
) -> None:
    """List the rules behind the answers: patterns of relations, how much they carry, how often they hold."""
    with importing():
        from kgcf.cli.tables import show_table
        from kgcf.progress import showing
        from kgcf.runs.run import Run
    opened = Run.open(run, device)
    with showing("explaining answers", answers) as advance:
        found = opened.rules(relation, top=top, answers=answers, seed=seed, advance=advance)
    if as_json:
        print_json([rule.to_json() for rule in found])
        return
    show_table(rule_table(found, short=True), rule_table(found, short=False))
    if not found:
        Screen(stderr=True).print(NO_RULE)


def rule_table(rules: "tuple[Rule, ...]", short: bool) -> "DataTable":
    """Rules for people; `short`: one example, and figures that belong together in one column."""
    from kgcf.cli.tables import Column, DataTable

    columns = (
        Column("rule", folds=True),
        Column("answers", right=True),
        Column("of", right=True, spare=1),
        Column("mean drop", right=True, digits=2),
        Column("confidence", right=True, digits=3),
        Column("pairs", right=True, spare=2),
        Column("example" if short else "examples", folds=True, spare=3),
    )
    table = DataTable(columns)
    for rule in rules:
        examples = [str(path) for path in rule.examples]
        shown = examples[0] if short else " | ".join(examples)
        figures = (rule.answers, rule.explained, rule.mean_drop, rule.confidence, rule.pairs)
        table.rows.append([rule.text, *figures, shown])
    if not all(rule.exact for rule in rules):
        inexact = sum(not rule.exact for rule in rules)
        table.caption = (
            f"{inexact} of the rules have too many paths: their pairs were counted over a part of the heads."
        )
    return table
