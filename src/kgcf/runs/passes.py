"""How many passes an epoch has: what `training.budget` counts and what a time is divided into."""

import math

from kgcf.config import Settings
from kgcf.data.graph import KnowledgeGraph
from kgcf.training.passes import Passes


def passes_of(graph: KnowledgeGraph, settings: Settings) -> Passes:
    """The passes that the settings ask for."""
    return Passes(graph, settings.objective.answers, settings.objective.answers_share)


def passes_per_epoch(graph: KnowledgeGraph, settings: Settings) -> int:
    """Passes of one epoch as the loop counts them: over all train triples, or `batches_per_epoch` steps.

    The last step of an epoch may be smaller than the others; the loop's budget counts it as a whole one.
    """
    training = settings.training
    step = training.batch_size * training.accumulate
    return step * (training.batches_per_epoch or math.ceil(len(passes_of(graph, settings)) / step))
