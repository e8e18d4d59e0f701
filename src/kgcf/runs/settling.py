"""What is left to the data is settled by the data before training: `remove = auto`, the depth, threads."""

import numpy as np
import torch

from kgcf.causal.cached_stages import Say, quiet
from kgcf.causal.treatment.label_file import check_label_file
from kgcf.config import Settings
from kgcf.data.dataset import Dataset
from kgcf.errors import DataError
from kgcf.propagation.plan.planner import Budget, Planner
from kgcf.training.batches import Rules, choose_removal, make_batch, stream
from kgcf.training.depth import choose_depth
from kgcf.training.passes import Passes
from kgcf.training.reach import DEEPEST, Reach, measure_reach

SLOTS_WORTH_THREADS = 60_000  # state updates per batch from which a second thread pays
HARDLY_ANY = 0.1  # share of answers within reach below which there is little to learn


def settle(
    settings: Settings, data: Dataset, *, keep_depth: bool = True, say: Say = quiet, warn: Say = quiet
) -> Settings:
    """Replace what was left to the data by what the data say; refuse what cannot work, warn of what hardly can.

    With `keep_depth` the number of layers is somebody's choice: it stays, and is warned about where it reaches little.
    """
    if not len(data.graph):
        raise DataError(f"{data.name} has no train triples, so there is nothing to learn from.")
    if settings.decoder.treatment and settings.treatment.path is not None:
        check_label_file(settings.treatment.path, data.entities, data.relations)
    training = settings.training
    remove = training.remove
    if remove == "auto":
        remove = choose_removal(data.graph, data.valid.queries)
    settled = settings.model_copy(update={"training": training.model_copy(update={"remove": remove})})
    reach = measure_reach(data.graph, data.valid.queries, settings.objective.negatives, remove, training.seed)
    settled = _settle_depth(settled, reach, keep_depth, say, warn)
    threads = training.threads or _useful_threads(settled, data)
    return settled.model_copy(update={"training": settled.training.model_copy(update={"threads": threads})})


def _settle_depth(settings: Settings, reach: Reach, keep: bool, say: Say, warn: Say) -> Settings:
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
    """One thread where a batch is so small that threads would wait for each other, else one per core.

    Two processes (`torchrun --nproc-per-node 2 -m kgcf train …`) use both cores on small batches too.
    """
    training = settings.training
    assert training.remove != "auto"
    passes = Passes(data.graph, settings.objective.answers)
    asked = passes.epoch(training.seed, 0).take(np.arange(min(training.batch_size, len(passes))))
    rules = Rules(settings.objective.negatives, training.remove)
    batch = make_batch(data.graph, asked, rules, stream(training.seed, 0))
    if not len(batch):
        return 1
    slots = 0
    budget = Budget(training.memory_gb * 1e9, settings.encoder.width, settings.encoder.statistics)
    planner = Planner(data.graph, settings.encoder.layers)
    for plan in planner.parts(batch.heads, batch.relations, batch.candidates, batch.hidden, budget):
        slots += plan.slot_count
    return torch.get_num_threads() if slots >= SLOTS_WORTH_THREADS else 1
