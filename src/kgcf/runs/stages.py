"""The stages before training, each computed once and kept in the run: treatment, entity space, substitutes."""

from collections.abc import Callable

import numpy as np

from kgcf.causal.counterfactual import CounterfactualTable, match_pairs
from kgcf.causal.embedding import EntitySpace, count_steps, embed_entities, open_space
from kgcf.causal.treatment import Treatment, assign_treatment, open_treatment
from kgcf.causal.treatment.label_file import keep_label_file, with_kept_labels
from kgcf.config import Settings
from kgcf.data.dataset import Dataset
from kgcf.data.graph import KnowledgeGraph
from kgcf.progress import showing
from kgcf.runs.folder import RunFolder
from kgcf.training.substitutes import Substitutes

Say = Callable[[str], None]


def quiet(_: str) -> None:
    """Say nothing."""


def treatment_stage(folder: RunFolder, data: Dataset, settings: Settings, say: Say = quiet) -> Treatment | None:
    """c_r of every entity (paper sec. 4.2); None for a model without treatment."""
    if not settings.decoder.treatment:
        return None
    path = folder.file("treatment.safetensors")
    if path.is_file():
        return open_treatment(path, data.graph)
    say(f"treatment: {settings.treatment.method}")
    keep_label_file(settings.treatment, folder.path)
    chosen = with_kept_labels(settings.treatment, folder.path)
    treatment = assign_treatment(data.graph, chosen, entities=data.entities, relations=data.relations)
    treatment.save(path)
    return treatment


def substitutes_stage(
    folder: RunFolder, data: Dataset, settings: Settings, treatment: Treatment | None, say: Say = quiet
) -> Substitutes | None:
    """The nearest pair with the other treatment for every train triple (sec. 4.3); None where no loss needs it."""
    if treatment is None or not settings.needs_matching:
        return None
    path = folder.file("counterfactuals.parquet")
    remove = settings.training.remove
    assert remove != "auto"
    choices = (settings.matching.candidates, settings.treatment.leave_one_out, remove)
    if path.is_file():
        kept = CounterfactualTable.from_parquet(path)
        if (kept.candidates, kept.leave_one_out, kept.remove) == choices:
            return as_substitutes(data.graph, kept)
        say(f"{path.name} was made by other rules; matching again")
    space = space_stage(folder, data.graph, settings, say)
    say(f"matching {len(data.graph):,} triples with their nearest pair of the other treatment")
    with showing("matching", len(data.graph)) as advance:
        table = match_pairs(
            data.graph.triples,
            data.graph,
            space,
            treatment,
            candidates=settings.matching.candidates,
            leave_one_out=settings.treatment.leave_one_out,
            advance=advance,
            remove=remove,
        )
    table.to_parquet(path, data.entities, data.relations)
    return as_substitutes(data.graph, table)


def space_stage(folder: RunFolder, graph: KnowledgeGraph, settings: Settings, say: Say = quiet) -> EntitySpace:
    """M, the ψ-weighted sum of one space per relation."""
    path = folder.file("space.safetensors")
    if path.is_file():
        return open_space(path)
    say("entity space: random walks and skip-gram per relation")
    with showing("entity space", count_steps(graph, settings.space)) as advance:
        space = embed_entities(graph, settings.space, advance=advance)
    space.save(path)
    return space


def as_substitutes(graph: KnowledgeGraph, table: CounterfactualTable) -> Substitutes:
    """What training needs of the table."""
    return Substitutes(
        graph=graph,
        heads=table.substitutes[:, 0].astype(np.int64),
        tails=table.substitutes[:, 1].astype(np.int64),
        matched=table.matched,
        treatments=table.counterfactual_treatments,
        outcomes=table.counterfactual_outcomes,
    )
