"""A run at work on a graph: its model or models, its treatment, its memory where that has a say, its calibration."""

from typing import TYPE_CHECKING

from kgcf.baselines.contract import Baseline
from kgcf.data.dataset import Dataset
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.baseline_graph import BaselineGraph
from kgcf.prediction.blending.recall import Recall
from kgcf.prediction.calibration.fitting import UNCALIBRATED
from kgcf.prediction.observed_graph import Companions, ObservedGraph, with_paths
from kgcf.runs.stages import treatment_to_answer

if TYPE_CHECKING:
    from kgcf.runs.run import Run


def bind_run(
    run: "Run", graph: KnowledgeGraph, entities: Vocabulary, train: KnowledgeGraph | None, own: bool
) -> AnsweringGraph:
    """The run on one graph; memory has a say only where the entities are the run's `own`, numbered as in training."""
    calibration = UNCALIBRATED if run.calibration is None else run.calibration.calibration
    alone = None if run.calibration is None else run.calibration.paths
    memory = run.workspace or run.settings.training.memory_gb * 1e9
    if isinstance(run.weights, Baseline):
        return BaselineGraph(run.weights, graph, entities, run.data, calibration, train, memory)
    return ObservedGraph(
        run.weights,
        graph,
        entities,
        run.data.relations,
        treatment_to_answer(run.folder, run.data, run.settings, graph, entities),
        calibration=calibration,
        train=train,
        memory=memory,
        recall=_recall_about(run, entities) if own else None,
        companions=_companions(run, graph, entities, train, own),
        paths_calibration=alone,
    )


def aligned_data(own: Dataset, data: Dataset | None) -> Dataset:
    """Another dataset, with the relations numbered as in a run's own; None is the run's own."""
    if data is None:
        return own
    from kgcf.runs.other_graphs import align_dataset  # with all the readers, which are slow to import

    return align_dataset(data, own)


def _companions(
    run: "Run", graph: KnowledgeGraph, entities: Vocabulary, train: KnowledgeGraph | None, own: bool
) -> Companions | None:
    """The runs beside this one, on the same graph."""
    if run.ensemble is None:
        return None
    bound = tuple(with_paths(other.bind(graph, entities, train, own=own)) for other in run.others)
    return Companions(bound, run.ensemble.weights, run.ensemble.names)


def _recall_about(run: "Run", entities: Vocabulary) -> Recall | None:
    """The memory, if these are entities of the train graph, or all but the last; an inductive test has others."""
    if run.recall is None or entities is run.data.entities:
        return run.recall
    labels = entities.labels()
    return run.recall if labels == run.data.entities.labels()[: len(labels)] else None
