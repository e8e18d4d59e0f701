"""The work of `kgcf counterfactuals`: treatment, space, table and effects of a dataset, printed and saved."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from kgcf.causal.cache import Cache, user_cache
from kgcf.causal.cached_stages import CausalStages
from kgcf.causal.counterfactual import CounterfactualTable, Diagnostics, diagnose, match_pairs
from kgcf.causal.counterfactual.descriptions import describe, example_rows, row_json
from kgcf.causal.embedding import SpaceSettings
from kgcf.causal.treatment import Treatment, TreatmentSettings
from kgcf.choices import Candidates, RemoveRule
from kgcf.cli.diagnostics_tables import diagnostics_tables
from kgcf.cli.options import say_notes
from kgcf.data.dataset import Dataset
from kgcf.data.hiding import Remove
from kgcf.errors import SettingsError
from kgcf.machine.provenance import provenance
from kgcf.progress import showing
from kgcf.screen import Screen, cell, print_json
from kgcf.storage import write_json
from kgcf.training.batches import choose_removal


@dataclass(frozen=True)
class CausalWork:
    """What is to be computed of a dataset, and with how many threads."""

    treatment: TreatmentSettings
    space: SpaceSettings
    candidates: Candidates
    remove: RemoveRule
    threads: int | None
    cache: bool

    def prepare(self, dataset: Dataset) -> tuple[CausalStages, Treatment, Remove]:
        """The stage that computes and keeps, the labels of the entities, and what a triple hides."""
        kept = user_cache(lambda note: say_notes([note])) if self.cache else Cache(None)
        stages = CausalStages(kept, self.threads, showing)
        rule = self.remove
        hides: Remove = choose_removal(dataset.valid.observed, dataset.valid.queries) if rule == "auto" else rule
        assigned = stages.treatment(dataset.graph, self.treatment, dataset.entities, dataset.relations)
        say_notes(assigned.notes)
        return stages, assigned, hides

    def protocol(self, pairs: int) -> dict[str, Any]:
        """What the figures depend on, and where they come from."""
        settings = {"treatment": self.treatment.model_dump(mode="json"), "space": self.space.model_dump(mode="json")}
        return {**settings, "pairs_per_relation": pairs, **provenance()}


@dataclass(frozen=True)
class Shown:
    """What is printed and saved."""

    pairs: int  # drawn per relation for the effect
    examples: int
    relations: int  # listed
    output: Path | None
    as_json: bool


def treatment_settings(method: str, leave_one_out: bool, k: int | None, labels: Path | None) -> TreatmentSettings:
    """The settings that were given; one that would be ignored is refused."""
    given: dict[str, Any] = {"method": method, "leave_one_out": leave_one_out}
    given |= {} if k is None else {"k": k}
    given |= {} if labels is None else {"path": labels}
    try:
        return TreatmentSettings(**given)
    except ValidationError as error:
        raise SettingsError(
            " ".join(problem["msg"].removeprefix("Value error, ") for problem in error.errors())
        ) from None


def report(work: CausalWork, dataset: Dataset, shown: Shown) -> None:
    """The table of all train triples and what follows from it: saved where that is wanted, then printed."""
    stage, assigned, hides = work.prepare(dataset)
    space = stage.space(dataset.graph, work.space)
    table = stage.table(space, assigned, work.candidates, work.treatment.leave_one_out, hides)
    relations, seed = len(np.unique(dataset.graph.triples[:, 1])), work.space.seed
    with showing("effects and placebos", 3 * relations) as advance:
        found = diagnose(dataset, table, space, assigned, seed, shown.pairs, work.threads, advance)
    rows = list(example_rows(table, shown.examples, np.random.default_rng(seed)))
    examples = [row_json(table, row, dataset.entities, dataset.relations) for row in rows]
    result = {**found.to_json(), "examples": examples, "protocol": work.protocol(shown.pairs)}
    if shown.output is not None:
        _save(dataset, table, found, result, shown.output)
    if shown.as_json:
        print_json(result)
    else:
        _print(dataset, table, found, rows, shown)


def print_triple(work: CausalWork, dataset: Dataset, triple: tuple[str, str, str], as_json: bool) -> None:
    """The substitute of one triple, known or not."""
    stage, assigned, hides = work.prepare(dataset)
    space = stage.space(dataset.graph, work.space)
    head, relation, tail = triple
    entities, relations = dataset.entities, dataset.relations
    asked = entities.id(head, "entity"), relations.id(relation, "relation"), entities.id(tail, "entity")
    table = match_pairs([asked], dataset.graph, space, assigned, work.candidates, remove=hides)
    if as_json:
        print_json({**row_json(table, 0, entities, relations), "note": table.note})
        return
    screen = Screen(wrap=False)
    screen.print(cell(describe(table, 0, entities, relations)))
    screen.print(table.note)


def _save(
    dataset: Dataset, table: CounterfactualTable, found: Diagnostics, result: dict[str, Any], output: Path
) -> None:
    """The table, the figures and the plot."""
    from kgcf.causal.counterfactual.plots import plot_diagnostics  # matplotlib is slow to import, and seldom needed

    table.to_parquet(output / "counterfactuals.parquet", dataset.entities, dataset.relations)
    write_json(output / "diagnostics.json", result)
    for name in ("diagnostics.png", "diagnostics.svg"):
        plot_diagnostics(found, output / name)


def _print(dataset: Dataset, table: CounterfactualTable, found: Diagnostics, rows: Sequence[int], shown: Shown) -> None:
    screen = Screen()
    screen.print(diagnostics_tables(found, shown.relations))
    for row in rows:
        screen.print()
        screen.print(cell(describe(table, row, dataset.entities, dataset.relations)))
    if shown.output is not None:
        screen.print()
        screen.print(cell(f"Written to {shown.output}"), soft_wrap=True)
