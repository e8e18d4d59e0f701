"""What ranking all entities takes, by depth: for validation, calibration and test."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.propagation.plan.planner import Budget, Planner
from kgcf.runs.model_file import new_model
from kgcf.runs.survey.ground import QUICK, STREAM, Allowance, Ground, mean_work
from kgcf.training.batches import stream
from kgcf.training.cost_model import Work, fit_costs, prior_model
from kgcf.training.survey import RankCost

RANKED = 64  # questions that are ranked at once, if that is quick


def survey_rankings(ground: Ground, depths: Sequence[int], allowance: Allowance) -> list[RankCost]:
    """What a question takes when all entities are ranked, by depth; measured while the allowance holds."""
    questions = _questions(ground)
    _time_ranking(ground, depths[0], questions[:1])  # compiles what is not compiled yet
    allowance.begin()
    points: list[tuple[Work, float]] = []
    counted: list[tuple[int, Work, bool]] = []
    model = prior_model()
    for index, layers in enumerate(depths):
        work = _count_rankings(ground, layers, questions)
        affordable = model.milliseconds(work) / 1e3 * 8 < allowance.left
        timed = not points or (affordable and index % 2 == 0)
        if timed:
            points.append((work, _time_ranking(ground, layers, questions)))
            model = fit_costs(points)
        counted.append((layers, work, timed))
    return [RankCost(layers, work, model.milliseconds(work), timed) for layers, work, timed in counted]


def _questions(ground: Ground) -> NDArray[np.int64]:
    """[Q, 2] questions of validation, or of train where there is none, in random order."""
    task = ground.data.valid if len(ground.data.valid) else ground.data.train
    drawn = stream(ground.settings.training.seed, STREAM).permutation(len(task.queries))[:RANKED]
    triples = task.queries[drawn].astype(np.int64)
    turned = np.arange(len(triples)) % 2 == 1
    heads = np.where(turned, triples[:, 2], triples[:, 0])
    return np.stack([heads, triples[:, 1] + turned * task.observed.relation_count], axis=1)


def _count_rankings(ground: Ground, layers: int, questions: NDArray[np.int64]) -> Work:
    settings, task = ground.settings, ground.data.valid
    planner = Planner(task.observed, layers, everybody=settings.encoder.everybody)
    budget = Budget(settings.training.memory_gb * 1e9, settings.encoder.width, settings.encoder.statistics)
    began, found = ground.clock(), []
    for first in range(0, len(questions), 4):
        part = questions[first : first + 4]
        found.append(mean_work(planner, part[:, 0], part[:, 1], None, budget))
        if ground.clock() - began > QUICK / 10:
            break
    return Work(float(np.mean([w.updates for w in found])), float(np.mean([w.messages for w in found])))


def _time_ranking(ground: Ground, layers: int, questions: NDArray[np.int64]) -> float:
    """Milliseconds per question, over as many as can be ranked quickly; the first four are not counted."""
    settings, task = ground.with_size(layers, 1), ground.data.valid
    model = new_model(settings, len(ground.data.relations)).to(ground.device)
    memory = settings.training.memory_gb * 1e9
    bound = ObservedGraph(
        model, task.observed, task.entities, ground.data.relations, ground.valid_treatment, memory=memory
    )
    asked, taken = 4, 0.0
    bound.scorer.score_tails(questions[:4, 0], questions[:4, 1])
    while True:
        began = ground.clock()
        bound.scorer.score_tails(questions[:asked, 0], questions[:asked, 1])
        taken = ground.clock() - began
        if taken > QUICK / 2 or asked >= len(questions):
            return taken * 1e3 / min(asked, len(questions))
        asked *= 4
