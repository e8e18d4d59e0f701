"""Real training steps of a throw-away model, timed, and the work of those that are only planned."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from kgcf.config import Settings
from kgcf.data.graph import KnowledgeGraph
from kgcf.machine.devices import worker_threads
from kgcf.propagation.layers.sparse import budget_for
from kgcf.propagation.plan.planner import Budget, Planner
from kgcf.propagation.workers import Workers
from kgcf.runs.model_file import new_model
from kgcf.runs.survey.ground import QUICK, STREAM, Allowance, Ground, mean_work
from kgcf.training.batches import Batch, make_batch, rules_for, stream
from kgcf.training.cost_model import CostModel, Work, fit_costs, prior_model
from kgcf.training.passes import Asked
from kgcf.training.step import GradientComputer
from kgcf.training.substitutes import Substitutes
from kgcf.training.survey import PassCost

SLOTS_WORTH_THREADS = 60_000  # state updates per batch from which a second thread pays
PROCESS_GAIN = 0.8  # what a further process adds to the speed of one
STEPS = 4  # that are timed at a depth, if they are quick
COUNTED = 256  # passes that are planned to count their work, if that is quick


def survey_passes(
    ground: Ground,
    depths: Sequence[int],
    negatives: Sequence[int],
    allowance: Allowance,
    hopeless: float,
    fan_in: int | None = None,
) -> list[PassCost]:
    """What a pass takes at every depth, until one takes more than `hopeless` milliseconds: deeper ones take more.

    Work is counted at every depth; steps are run at every second one, with the fewest and the most negatives, as
    long as the allowance holds. Times that were not measured come from the cost model.
    """
    time_steps(ground, depths[0], negatives[0], 1, 1, fan_in)  # compiles what is not compiled yet
    allowance.begin()
    counted: list[tuple[int, int, Work]] = []
    points: list[tuple[Work, float]] = []
    measured: set[tuple[int, int]] = set()
    model, gain = prior_model(), 1.0
    for index, layers in enumerate(depths):
        works = [(layers, count, count_passes(ground, layers, count, fan_in)) for count in negatives]
        counted += works
        for _, count, work in _ends(works) if index % 2 == 0 else ():
            threads = _threads(ground, work)
            step = model.milliseconds(work) / 1e3 * ground.settings.training.batch_size
            if points and 3 * step / threads > allowance.left:
                continue
            if threads > 1 and gain == 1.0:
                gain = _gain(ground, layers, count, threads, fan_in)
            found = time_steps(ground, layers, count, threads, STEPS, fan_in)
            points += [(done, milliseconds * (gain if threads > 1 else 1.0)) for done, milliseconds in found]
            measured.add((layers, count))
            model = fit_costs(points)
        if model.milliseconds(works[0][2]) / gain > hopeless or allowance.left <= 0:
            break
    return [_pass_cost(ground, row, model, gain, (row[0], row[1]) in measured, fan_in) for row in counted]


def time_steps(
    ground: Ground, layers: int, negatives: int, threads: int, most: int, fan_in: int | None = None
) -> list[tuple[Work, float]]:
    """Real steps of a throw-away model, forward, backward and Adam: what each computed and milliseconds per pass.

    One step more is made first, for what only the first one has to do.
    """
    settings = ground.with_size(layers, negatives, fan_in)
    model = new_model(settings, len(ground.data.relations)).to(ground.device)
    context = ground.context(model, ground.data, settings, ground.treatment, _stand_ins(ground))
    computer = GradientComputer(context, worker_threads(ground.device, threads))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-9)
    planner = Planner(ground.data.graph, layers, everybody=settings.encoder.everybody)
    budget, found, spent = budget_for(model.encoder, context.memory), [], 0.0
    with Workers(1), torch.enable_grad():
        for step, asked in enumerate(first_steps(ground, most + 1)):
            began = ground.clock()
            batch = _batch(ground, settings, asked, step)
            total, _ = computer.compute(batch)
            for parameter, gradient in zip(model.parameters(), total.mean_gradients(model), strict=True):
                parameter.grad = gradient
            optimiser.step()
            taken = ground.clock() - began
            if step:
                found.append((_work(planner, batch, settings, budget), taken * 1e3 / max(len(batch), 1)))
                spent += taken
            if spent > QUICK:
                break
    return found


def _gain(ground: Ground, layers: int, negatives: int, threads: int, fan_in: int | None) -> float:
    """How many times faster steps are with so many threads than with one; never slower is believed."""
    alone, together = (
        float(np.mean([taken for _, taken in time_steps(ground, layers, negatives, count, 2, fan_in)]))
        for count in (1, threads)
    )
    return max(1.0, alone / max(together, 1e-9))


def _pass_cost(
    ground: Ground, row: tuple[int, int, Work], model: CostModel, gain: float, measured: bool, fan_in: int | None
) -> PassCost:
    layers, negatives, work = row
    threads = _threads(ground, work)
    speed = (gain if threads > 1 else 1.0) * (1 + PROCESS_GAIN * (ground.processes - 1))
    return PassCost(layers, negatives, work, model.milliseconds(work) / speed, threads, measured, fan_in)


def useful_threads(updates: float, wanted: int | None) -> int:
    """As wanted; else one where a batch has so few updates that threads would wait for each other, or one per core.

    Two processes (`torchrun --nproc-per-node 2 -m kgcf train …`) use both cores on small batches too.
    """
    return wanted or (torch.get_num_threads() if updates >= SLOTS_WORTH_THREADS else 1)


def _threads(ground: Ground, work: Work) -> int:
    training = ground.settings.training
    return useful_threads(work.updates * training.batch_size, training.threads)


def first_steps(ground: Ground, count: int, size: int | None = None) -> Iterator[Asked]:
    """What the first steps ask, from the beginning again where the graph is small."""
    epoch, size = ground.first_epoch, size or ground.settings.training.batch_size
    for step in range(count):
        yield epoch.take(np.arange(step * size, (step + 1) * size) % len(epoch.order))


def _batch(ground: Ground, settings: Settings, asked: Asked, step: int) -> Batch:
    """Passes as the loop makes them."""
    remove = settings.training.remove
    assert remove != "auto"
    rules = rules_for(settings.objective, remove, settings.encoder)
    return make_batch(ground.data.graph, asked, rules, stream(settings.training.seed, STREAM, step))


def count_passes(ground: Ground, layers: int, negatives: int, fan_in: int | None = None) -> Work:
    """The mean work of a pass, over as many as can be planned quickly."""
    settings = ground.with_size(layers, negatives, fan_in)
    planner = Planner(ground.data.graph, layers, everybody=settings.encoder.everybody)
    budget = Budget(settings.training.memory_gb * 1e9, settings.encoder.width, settings.encoder.statistics)
    began, passes, total = ground.clock(), 0, np.zeros(2)
    for step, asked in enumerate(first_steps(ground, COUNTED // 8, 8)):
        batch = _batch(ground, settings, asked, step)
        if len(batch):
            work = _work(planner, batch, settings, budget)
            total += len(batch) * np.array([work.updates, work.messages])
            passes += len(batch)
        if passes and ground.clock() - began > QUICK / 10:
            break
    return Work(*(total / max(passes, 1)).tolist())


def _work(planner: Planner, batch: Batch, settings: Settings, budget: Budget) -> Work:
    return mean_work(planner, batch.heads, batch.relations, batch, budget, settings.training.fan_in)


def _stand_ins(ground: Ground) -> Substitutes | None:
    """Substitutes that cost what the real ones do, which are not there yet: other triples' pairs."""
    if ground.treatment is None or not ground.settings.needs_matching:
        return None
    graph: KnowledgeGraph = ground.data.graph
    pairs = np.roll(graph.triples.astype(np.int64), 1, axis=0)
    half = np.arange(len(graph)) % 2 == 0
    every = np.ones(len(graph), dtype=bool)
    return Substitutes(graph, pairs[:, 0], pairs[:, 2], every, half, ~half, np.ones(len(graph)))


def _ends(works: list[tuple[int, int, Work]]) -> list[tuple[int, int, Work]]:
    return [works[0], works[-1]] if len(works) > 1 else works
