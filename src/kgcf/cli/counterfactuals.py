"""`kgcf counterfactuals DATA`: substitutes, outcomes and effects of the treatment, printed and saved for any graph."""

import json
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from kgcf.cache import Cache
from kgcf.cli.options import DataArgument, HeaderOption, JsonOption, LeakOption, NamesOption, SplitSeedOption, open_data
from kgcf.counterfactual import CausalStage, CounterfactualTable, Diagnostics, diagnose, match_pairs
from kgcf.counterfactual.candidates import Candidates
from kgcf.counterfactual.report import diagnostics_tables
from kgcf.counterfactual.sentences import describe, example_rows, row_json
from kgcf.data.dataset import Dataset
from kgcf.data.places import cache_folder
from kgcf.embedding import EntitySpace, SpaceSettings
from kgcf.errors import SettingsError, unknown_name
from kgcf.progress import showing
from kgcf.provenance import provenance
from kgcf.storage import check_writable, write_json
from kgcf.treatment import TREATMENTS, Treatment, TreatmentSettings, assign_treatment

_CANDIDATES = ("observed", "all")
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
    split_seed: SplitSeedOption = 0,
    allow_inverse_leak: LeakOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find, for every train triple, the nearest pair with the other treatment, and say what follows from it."""
    chosen = cast(Candidates, _choice("candidate set", candidates, _CANDIDATES))
    space_settings = SpaceSettings(psi=cast(Any, _choice("weight", psi, _PSI)), seed=seed)
    settings = _treatment_settings(treatment, leave_one_out, k, labels)
    if output is not None:
        check_writable(output / "counterfactuals.parquet")
    dataset = open_data(data, names, header, split_seed, allow_inverse_leak, quiet=as_json)
    stage = CausalStage(Cache(cache_folder() / "causal" if cache else None, _notice), threads, showing)
    assigned = _assign(dataset, settings, threads)
    space = stage.space(dataset.graph, space_settings)
    if triple is not None:
        _print_triple(dataset, _ids(dataset, triple), space, assigned, chosen, as_json)
        return
    table = stage.table(space, assigned, chosen, leave_one_out)
    found = _diagnose(dataset, table, space, assigned, seed, pairs, threads)
    rows = list(example_rows(table, examples, np.random.default_rng(seed)))
    _deliver(dataset, table, found, rows, _protocol(settings, space_settings, pairs), relations, output, as_json)


def _deliver(
    dataset: Dataset,
    table: CounterfactualTable,
    found: Diagnostics,
    rows: list[int],
    protocol: dict[str, Any],
    relations: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Save what is to be saved, then print tables or JSON."""
    examples = [row_json(table, row, dataset.entities, dataset.relations) for row in rows]
    result = {**found.to_json(), "examples": examples, "protocol": protocol}
    if output is not None:
        table.to_parquet(output / "counterfactuals.parquet", dataset.entities, dataset.relations)
        write_json(output / "diagnostics.json", result)
        from kgcf.counterfactual.plots import plot_diagnostics  # matplotlib is slow to import, and seldom needed

        for name in ("diagnostics.png", "diagnostics.svg"):
            plot_diagnostics(found, output / name)
    if as_json:
        typer.echo(json.dumps(result, indent=2, ensure_ascii=False))
        return
    console = Console()
    console.print(diagnostics_tables(found, relations))
    for row in rows:
        console.print(Text("\n" + describe(table, row, dataset.entities, dataset.relations)))
    if output is not None:
        console.print(f"\nWritten to {output}", soft_wrap=True, markup=False)


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
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"note: {text}", style="dim", markup=False)


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
    as_json: bool,
) -> None:
    table = match_pairs([triple], dataset.graph, space, treatment, candidates)
    if as_json:
        values = row_json(table, 0, dataset.entities, dataset.relations)
        typer.echo(json.dumps({**values, "note": table.note}, indent=2, ensure_ascii=False))
        return
    typer.echo(describe(table, 0, dataset.entities, dataset.relations))
    typer.echo(table.note)


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
