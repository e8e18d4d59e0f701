"""How many passes an epoch has: what `training.budget` counts and what a time is divided into."""

import math

from kgcf.config import Settings
from kgcf.data.graph import KnowledgeGraph


def passes_per_epoch(graph: KnowledgeGraph, settings: Settings) -> int:
    """Passes of one epoch as the loop counts them: a query of every train triple, or `batches_per_epoch` steps.

    The last step of an epoch may be smaller than the others; the loop's budget counts it as a whole one.
    """
    training = settings.training
    step = training.batch_size * training.accumulate
    return step * (training.batches_per_epoch or math.ceil(len(graph) / step))
