"""What a run keeps of the causal stages: its own copies of treatment, entity space and substitutes."""

from contextlib import AbstractContextManager

import numpy as np

from kgcf.causal.cache import Cache, user_cache
from kgcf.causal.cached_stages import CausalStages, Say, quiet
from kgcf.causal.counterfactual import CounterfactualTable
from kgcf.causal.embedding import EntitySpace, open_space
from kgcf.causal.treatment import Treatment, open_treatment
from kgcf.causal.treatment.label_file import keep_label_file, with_kept_labels
from kgcf.config import Settings
from kgcf.data.dataset import Dataset
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.progress import Advance, Position, showing
from kgcf.runs.folder import RunFolder
from kgcf.runs.training_log import log_position
from kgcf.screen import somebody_looks
from kgcf.training.substitutes import Substitutes

TREATMENT = "treatment.safetensors"


def treatment_stage(folder: RunFolder, data: Dataset, settings: Settings, say: Say = quiet) -> Treatment | None:
    """c_r of every entity (paper sec. 4.2); None for a model without treatment."""
    if not settings.decoder.treatment:
        return None
    path = folder.file(TREATMENT)
    if path.is_file():
        return open_treatment(path, data.graph)
    keep_label_file(settings.treatment, folder.path)
    chosen = with_kept_labels(settings.treatment, folder.path)
    treatment = _stages(folder, say).treatment(data.graph, chosen, data.entities, data.relations)
    treatment.save(path)
    return treatment


def keep_treatment(folder: RunFolder, settings: Settings, treatment: Treatment | None) -> None:
    """Put a treatment of the train graph that is there already into the run; labels from a file are read again."""
    if treatment is not None and settings.treatment.method != "file":
        treatment.save(folder.file(TREATMENT))


def treatment_to_answer(
    folder: RunFolder, data: Dataset, settings: Settings, graph: KnowledgeGraph, entities: Vocabulary
) -> Treatment | None:
    """The treatment of a graph that a finished run answers questions on; None for a model without treatment.

    That of the train graph is in the run. Of the run's other graphs, the labels are in the user's cache from the
    second time on; of somebody else's graph nothing is kept.
    """
    if not settings.decoder.treatment:
        return None
    path = folder.file(TREATMENT)
    if graph.fingerprint == data.graph.fingerprint and path.is_file():
        return open_treatment(path, graph)
    own = graph is data.test.known or graph is data.test.observed
    stages = CausalStages(user_cache() if own else Cache(None))
    chosen = with_kept_labels(settings.treatment, folder.path)
    return stages.treatment(graph, chosen, entities, data.relations, store_changes=False)


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
    table = _stages(folder, say).table(space, treatment, *choices)
    table.to_parquet(path, data.entities, data.relations)
    return as_substitutes(data.graph, table)


def space_stage(folder: RunFolder, graph: KnowledgeGraph, settings: Settings, say: Say = quiet) -> EntitySpace:
    """M, the ψ-weighted sum of one space per relation."""
    path = folder.file("space.safetensors")
    if path.is_file():
        return open_space(path)
    space = _stages(folder, say).space(graph, settings.space)
    space.save(path)
    return space


def _stages(folder: RunFolder, say: Say) -> CausalStages:
    """With the user's cache: what `kgcf counterfactuals` or another run computed is not computed again."""

    def shown(stage: str, total: int) -> AbstractContextManager[Advance]:
        def tell(position: Position) -> None:
            log_position(folder, stage, position)
            if not somebody_looks():
                say(position.sentence(stage))

        return showing(stage, total, tell)

    return CausalStages(user_cache(say), showing=shown, say=say)


def as_substitutes(graph: KnowledgeGraph, table: CounterfactualTable) -> Substitutes:
    """What training needs of the table."""
    return Substitutes(
        graph=graph,
        heads=table.substitutes[:, 0].astype(np.int64),
        tails=table.substitutes[:, 1].astype(np.int64),
        matched=table.matched,
        treatments=table.counterfactual_treatments,
        outcomes=table.counterfactual_outcomes,
        distances=table.distances,
    )
