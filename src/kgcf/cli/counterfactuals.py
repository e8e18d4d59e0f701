"""`kgcf counterfactuals DATA`: substitutes, outcomes and effects of the treatment, printed and saved for any graph."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
import typer
from pydantic import ValidationError

from kgcf.causal.cache import Cache
from kgcf.causal.counterfactual import CausalStage, CounterfactualTable, Diagnostics, diagnose, match_pairs
from kgcf.causal.counterfactual.candidates import Candidates
from kgcf.causal.counterfactual.descriptions import describe, example_rows, row_json
from kgcf.causal.embedding import EntitySpace, SpaceSettings
from kgcf.causal.treatment import TREATMENTS, Treatment, TreatmentSettings, assign_treatment
from kgcf.cli.diagnostics_tables import diagnostics_tables
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
from kgcf.data.dataset import Dataset
from kgcf.data.hiding import Remove
from kgcf.data.locations import cache_folder
from kgcf.data.reading_options import Reading
from kgcf.errors import SettingsError, unknown_name
from kgcf.machine.provenance import provenance
from kgcf.progress import showing
from kgcf.screen import Screen, cell, print_json
from kgcf.storage import check_writable, write_json
from kgcf.training.batches import choose_removal

_CANDIDATES = ("observed", "all")
_REMOVE = ("auto", "triple", "pair")
_PSI = ("frequency", "uniform", "inverse")


TripleOption = Annotated[
    tuple[str, str, str] | None, typer.Option(metavar="H R T", help="Only this triple, known or not.")
]
TreatmentOption = Annotated[str, typer.Option(help=f"{', '.join(TREATMENTS)}.")]
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
    chosen = cast(Candidates, _choice("candidate set", candidates, _CANDIDATES))
    space_settings = SpaceSettings(psi=cast(Any, _choice("weight", psi, _PSI)), seed=seed)
    settings = _treatment_settings(treatment, leave_one_out, k, labels)
    rule = cast(Remove | Literal["auto"], _choice("removal", remove, _REMOVE))
    if output is not None:
        check_writable(output / "counterfactuals.parquet")
    dataset = open_data(data, names, Reading(header, comment, strip), split_seed, allow_inverse_leak, quiet=as_json)
    hides: Remove = choose_removal(dataset.graph, dataset.valid.queries) if rule == "auto" else rule
    stage = CausalStage(Cache(cache_folder() / "causal" if cache else None, _notice), threads, showing)
    assigned = _assign(dataset, settings, threads)
    space = stage.space(dataset.graph, space_settings)
    if triple is not None:
        _print_triple(dataset, _ids(dataset, triple), space, assigned, chosen, hides, as_json)
        return
    table = stage.table(space, assigned, chosen, leave_one_out, hides)
    found = _diagnose(dataset, table, space, assigned, seed, pairs, threads)
    rows = list(example_rows(table, examples, np.random.default_rng(seed)))
    findings = _Findings(dataset, table, found, rows, _protocol(settings, space_settings, pairs))
    _deliver(findings, relations, output, as_json)


@dataclass(frozen=True, eq=False)
class _Findings:
    """What the command has to say about a dataset."""

    dataset: Dataset
    table: CounterfactualTable
    diagnostics: Diagnostics
    rows: list[int]  # of the table, as examples
    protocol: dict[str, Any]


def _deliver(findings: _Findings, relations: int, output: Path | None, as_json: bool) -> None:
    """Save what is to be saved, then print tables or JSON."""
    dataset, table, rows = findings.dataset, findings.table, findings.rows
    examples = [row_json(table, row, dataset.entities, dataset.relations) for row in rows]
    result = {**findings.diagnostics.to_json(), "examples": examples, "protocol": findings.protocol}
    if output is not None:
        table.to_parquet(output / "counterfactuals.parquet", dataset.entities, dataset.relations)
        write_json(output / "diagnostics.json", result)
        from kgcf.causal.counterfactual.plots import plot_diagnostics  # matplotlib is slow to import, and seldom needed

        for name in ("diagnostics.png", "diagnostics.svg"):
            plot_diagnostics(findings.diagnostics, output / name)
    if as_json:
        print_json(result)
        return
    screen = Screen()
    screen.print(diagnostics_tables(findings.diagnostics, relations))
    for row in rows:
        screen.print()
        screen.print(cell(describe(table, row, dataset.entities, dataset.relations)))
    if output is not None:
        screen.print()
        screen.print(cell(f"Written to {output}"), soft_wrap=True)


def _protocol(treatment: TreatmentSettings, space: SpaceSettings, pairs: int) -> dict[str, Any]:
    settings = {"treatment": treatment.model_dump(mode="json"), "space": space.model_dump(mode="json")}
    return {**settings, "pairs_per_relation": pairs, **provenance()}


def _assign(dataset: Dataset, settings: TreatmentSettings, threads: int | None) -> Treatment:
    """Label the entities, and pass on what the method has to say."""
    assigned = assign_treatment(
        dataset.graph, settings, entities=dataset.entities, relations=dataset.relations, threads=threads
    )
    for note in assigned.notes:
        _notice(note)
    return assigned


def _choice(kind: str, name: str, choices: tuple[str, ...]) -> str:
    if name not in choices:
        raise unknown_name(kind, name, choices)
    return name


def _treatment_settings(method: str, leave_one_out: bool, k: int | None, labels: Path | None) -> TreatmentSettings:
    given: dict[str, Any] = {"method": _choice("treatment", method, tuple(TREATMENTS)), "leave_one_out": leave_one_out}
    given |= {} if k is None else {"k": k}
    given |= {} if labels is None else {"path": labels}
    try:
        return TreatmentSettings(**given)
    except ValidationError as error:
        raise SettingsError(
            " ".join(problem["msg"].removeprefix("Value error, ") for problem in error.errors())
        ) from None


def _notice(text: str) -> None:
    Screen(stderr=True, wrap=False).print(cell(f"note: {text}", "dim"))


def _ids(dataset: Dataset, triple: tuple[str, str, str]) -> tuple[int, int, int]:
    head, relation, tail = triple
    entities = dataset.entities
    return entities.id(head, "entity"), dataset.relations.id(relation, "relation"), entities.id(tail, "entity")


def _print_triple(
    dataset: Dataset,
    triple: tuple[int, int, int],
    space: EntitySpace,
    treatment: Treatment,
    candidates: Candidates,
    remove: Remove,
    as_json: bool,
) -> None:
    table = match_pairs([triple], dataset.graph, space, treatment, candidates, remove=remove)
    if as_json:
        values = row_json(table, 0, dataset.entities, dataset.relations)
        print_json({**values, "note": table.note})
        return
    screen = Screen(wrap=False)
    screen.print(cell(describe(table, 0, dataset.entities, dataset.relations)))
    screen.print(table.note)


def _diagnose(
    dataset: Dataset,
    table: CounterfactualTable,
    space: EntitySpace,
    treatment: Treatment,
    seed: int,
    pairs: int,
    threads: int | None,
) -> Diagnostics:
    relations = len(np.unique(dataset.graph.triples[:, 1]))
    with showing("effects and placebos", 3 * relations) as advance:
        return diagnose(dataset, table, space, treatment, seed, pairs, threads, advance)
