"""What is left to the data is settled by the data before training: `remove = auto`, the depth, threads."""

import numpy as np

from kgcf.causal.cached_stages import Say, quiet
from kgcf.causal.treatment.label_file import check_label_file
from kgcf.config import Settings
from kgcf.data.dataset import Dataset
from kgcf.errors import DataError
from kgcf.propagation.plan.planner import Budget, Planner
from kgcf.runs.memory_stage import check_memory
from kgcf.runs.passes import passes_of
from kgcf.runs.survey.ground import mean_work
from kgcf.runs.survey.steps import useful_threads
from kgcf.training.batches import choose_removal, make_batch, rules_for, stream
from kgcf.training.depth import choose_depth
from kgcf.training.reach import DEEPEST, Reach, measure_reach
from kgcf.training.semantics import check_everybody

HARDLY_ANY = 0.1  # share of answers within reach below which there is little to learn


def settle(
    settings: Settings, data: Dataset, *, keep_depth: bool = True, say: Say = quiet, warn: Say = quiet
) -> Settings:
    """Replace what was left to the data by what the data say; refuse what cannot work, warn of what hardly can.

    With `keep_depth` the number of layers is somebody's choice: it stays, and is warned about where it reaches little.
    """
    check_data(settings, data)
    settled = settle_removal(settings, data)
    reach = reach_of(settled, data)
    settled = settle_depth(settled, reach, keep_depth, say, warn)
    threads = settings.training.threads or _useful_threads(settled, data)
    return settled.model_copy(update={"training": settled.training.model_copy(update={"threads": threads})})


def check_data(settings: Settings, data: Dataset) -> None:
    """Refuse what cannot be trained on, or could not be finished after hours of it."""
    if not len(data.graph):
        raise DataError(f"{data.name} has no train triples, so there is nothing to learn from.")
    if settings.encoder.everybody:
        check_everybody(settings.encoder, settings.objective, settings.training)
    check_memory(settings, data)
    if settings.decoder.treatment and settings.treatment.path is not None:
        check_label_file(settings.treatment.path, data.entities, data.relations)


def settle_removal(settings: Settings, data: Dataset) -> Settings:
    """`remove = auto` becomes what validation pairs say, in the graph that validation observes."""
    if settings.training.remove != "auto":
        return settings
    remove = choose_removal(data.valid.observed, data.valid.queries)
    return settings.model_copy(update={"training": settings.training.model_copy(update={"remove": remove})})


def reach_of(settings: Settings, data: Dataset) -> Reach:
    """Which share of answers lies within 1, 2, … layers, with the settled rule of what is hidden."""
    training, task = settings.training, data.valid
    assert training.remove != "auto"
    negatives = settings.objective.negatives
    return measure_reach(data.graph, task.queries, negatives, training.remove, training.seed, task.observed)


def settle_depth(settings: Settings, reach: Reach, keep: bool, say: Say, warn: Say) -> Settings:
    """Deeper where the preset's depth misses most answers that more layers reach; a warning where that is forbidden."""
    layers = settings.encoder.layers
    better = choose_depth(reach.shares, layers)
    now, then = reach.sentence(layers), reach.sentence(better)
    if max(reach.train) < HARDLY_ANY:
        warn(
            f"{reach.sentence(DEEPEST)}: hardly anything can be learned, for kgcf learns from paths between the ends "
            "of a link. Give more triples, or relations that link these entities in other ways."
        )
    if better == layers:
        return settings
    if keep:
        warn(f"{now}. {then}: consider --set encoder.layers={better}.")
        return settings
    say(f"encoder.layers = {better} instead of {layers}. {now}. {then}.")
    return settings.model_copy(update={"encoder": settings.encoder.model_copy(update={"layers": better})})


def _useful_threads(settings: Settings, data: Dataset) -> int:
    """What the first batch is worth."""
    training = settings.training
    assert training.remove != "auto"
    passes = passes_of(data.graph, settings)
    asked = passes.epoch(training.seed, 0).take(np.arange(min(training.batch_size, len(passes))))
    rules = rules_for(settings.objective, training.remove, settings.encoder)
    batch = make_batch(data.graph, asked, rules, stream(training.seed, 0))
    if not len(batch):
        return 1
    budget = Budget(training.memory_gb * 1e9, settings.encoder.width, settings.encoder.statistics)
    planner = Planner(data.graph, settings.encoder.layers, everybody=settings.encoder.everybody)
    work = mean_work(planner, batch.heads, batch.relations, batch, budget, training.fan_in)
    return useful_threads(work.updates * len(batch), None)
