"""`kgcf counterfactuals DATA`: substitutes, outcomes and effects of the treatment, printed and saved for any graph."""

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from kgcf.choices import Candidates, MethodName, Psi, RemoveRule
from kgcf.cli.options import (
    CommentOption,
    DataArgument,
    HeaderOption,
    JsonOption,
    LeakOption,
    NamesOption,
    SplitSeedOption,
    StripOption,
    open_data,
)
from kgcf.data.reading_options import Reading
from kgcf.errors import unknown_name
from kgcf.machine.interrupts import importing

TripleOption = Annotated[
    tuple[str, str, str] | None, typer.Option(metavar="H R T", help="Only this triple, known or not.")
]
TreatmentOption = Annotated[str, typer.Option(help=f"{', '.join(get_args(MethodName))}.")]
CoreOption = Annotated[int | None, typer.Option(min=1, help="core_component: which core.")]
LabelsOption = Annotated[Path | None, typer.Option(help="file: lines entity, tab, (relation, tab,) label.")]
CandidatesOption = Annotated[str, typer.Option(help="observed pairs or all pairs.")]
LeaveOneOutOption = Annotated[
    bool, typer.Option("--leave-one-out/--no-leave-one-out", help="Leave a triple's own edge out of its treatment.")
]
RemoveOption = Annotated[
    str,
    typer.Option(help="What is left out: the triple, all links of its pair, or auto: as training on these data would."),
]
PsiOption = Annotated[str, typer.Option(help="Weight of a relation in the space: frequency, uniform, inverse.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of walks, vectors, draws and placebos.")]
PairsOption = Annotated[int, typer.Option(min=2, max=10_000, help="Pairs drawn per relation for the treatment effect.")]
ExamplesOption = Annotated[int, typer.Option(min=0, help="How many examples to print.")]
RelationsOption = Annotated[int, typer.Option(min=0, help="How many relations to list.")]
OutputOption = Annotated[Path | None, typer.Option(help="Folder for the table, the figures and the plot.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="Threads [default: all cores].")]
CacheOption = Annotated[bool, typer.Option("--cache/--no-cache", help="Keep the space and the table.")]


def counterfactuals(
    data: DataArgument,
    triple: TripleOption = None,
    treatment: TreatmentOption = "core_number",
    k: CoreOption = None,
    labels: LabelsOption = None,
    candidates: CandidatesOption = "observed",
    leave_one_out: LeaveOneOutOption = True,
    remove: RemoveOption = "auto",
    psi: PsiOption = "frequency",
    seed: SeedOption = 0,
    pairs: PairsOption = 2_000,
    examples: ExamplesOption = 5,
    relations: RelationsOption = 12,
    output: OutputOption = None,
    threads: ThreadsOption = None,
    cache: CacheOption = True,
    names: NamesOption = None,
    header: HeaderOption = None,
    comment: CommentOption = None,
    strip: StripOption = False,
    split_seed: SplitSeedOption = 0,
    allow_inverse_leak: LeakOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find, for every train triple, the nearest pair with the other treatment, and say what follows from it."""
    for kind, given, choices in (
        ("candidate set", candidates, Candidates),
        ("weight", psi, Psi),
        ("treatment", treatment, MethodName),
        ("removal", remove, RemoveRule),
    ):
        if given not in get_args(choices):
            raise unknown_name(kind, given, get_args(choices))
    with importing():
        from kgcf.causal.embedding import SpaceSettings
        from kgcf.cli.counterfactual_report import CausalWork, Shown, print_triple, report, treatment_settings
        from kgcf.storage import check_writable
    work = CausalWork(
        treatment_settings(treatment, leave_one_out, k, labels),
        SpaceSettings(psi=cast(Psi, psi), seed=seed),
        cast(Candidates, candidates),
        cast(RemoveRule, remove),
        threads,
        cache,
    )
    if output is not None:
        check_writable(output / "counterfactuals.parquet")
    dataset = open_data(data, names, Reading(header, comment, strip), split_seed, allow_inverse_leak, quiet=as_json)
    if triple is not None:
        print_triple(work, dataset, triple, as_json)
    else:
        report(work, dataset, Shown(pairs, examples, relations, output, as_json))
