"""Name → treatment: label a graph, or open labels that were saved."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.treatment.core_component import CoreComponent
from kgcf.causal.treatment.core_number import CollapsedCore, CoreNumber
from kgcf.causal.treatment.label_file import FileLabels
from kgcf.causal.treatment.labels import LabelTable
from kgcf.causal.treatment.louvain import Louvain
from kgcf.causal.treatment.relabelling import StoredChanges
from kgcf.causal.treatment.settings import TreatmentSettings
from kgcf.causal.treatment.shuffled_core import ShuffledCore
from kgcf.causal.treatment.treatment import FORMAT, Sources, Treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import StorageError
from kgcf.storage import map_arrays, read_header

TREATMENTS: dict[str, type[Treatment]] = {
    "core_number": CoreNumber,
    "core_component": CoreComponent,
    "collapsed_core": CollapsedCore,
    "louvain": Louvain,
    "shuffled_core": ShuffledCore,
    "file": FileLabels,
}


def assign_treatment(
    graph: KnowledgeGraph,
    settings: TreatmentSettings | None = None,
    *,
    entities: Vocabulary | None = None,
    relations: Vocabulary | None = None,
    threads: int | None = None,
    store_changes: bool = True,
) -> Treatment:
    """Label the entities of a graph under every relation; with `leave_one_out` also store what each edge changes.

    Without `store_changes` they are found when a query hides an edge: the same, and better for a few questions than for
    a training. The vocabularies are needed where labels come from a file. The result does not depend on `threads`.
    """
    chosen = settings or TreatmentSettings()
    workers = threads or os.cpu_count() or 1
    method = TREATMENTS[chosen.method]
    labelling = method.label(Sources(graph, entities, relations, workers), chosen)
    rule, stored = labelling.rule, None
    if rule is not None and chosen.leave_one_out and store_changes:
        stored = StoredChanges.compute(rule, workers)
    return method(graph, chosen, labelling.table, stored, labelling.notes, rule)


def assign_to_part(treatment: Treatment, part: KnowledgeGraph) -> Treatment:
    """The treatment of a part of its graph, equal to what hiding the other triples makes of it."""
    labels = treatment.labels_on(part)
    if labels is None:
        return assign_treatment(part, treatment.settings, store_changes=False)
    return type(treatment)(part, treatment.settings, labels, notes=treatment.notes)


def treatment_of_labels(
    graph: KnowledgeGraph, settings: TreatmentSettings, arrays: Mapping[str, NDArray[np.generic]]
) -> Treatment:
    """A treatment from labels that were kept as arrays; what an edge changes is found when it is hidden."""
    return TREATMENTS[settings.method](graph, settings, LabelTable.from_arrays(arrays, graph.entity_count))


def open_treatment(path: Path, graph: KnowledgeGraph) -> Treatment:
    """Read a saved treatment of this very graph."""
    metadata = read_header(path)[1]
    if FORMAT not in metadata:
        raise StorageError(f"{path} is not a treatment that this version of kgcf reads. Assign the treatment again.")
    arrays = map_arrays(path)
    try:
        about = json.loads(metadata[FORMAT])
        fingerprint, notes = about["graph"], tuple(about["notes"])
        settings = TreatmentSettings.model_validate_json(about["settings"])
        labels = LabelTable.from_arrays(arrays, graph.entity_count)
        stored = StoredChanges.from_arrays(arrays)
    except (KeyError, ValueError) as error:
        raise StorageError(f"{path} is damaged: a part of the treatment is missing. Assign it again.") from error
    if fingerprint != graph.fingerprint:
        raise StorageError(f"{path} holds the treatment of another graph. Assign the treatment of this one again.")
    return TREATMENTS[settings.method](graph, settings, labels, stored, notes)
