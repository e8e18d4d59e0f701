"""How long models take to answer: all in one process, one after the other, on the same questions.

The weights are those of the seed: no model's time depends on what it has learned, so nothing is trained for this.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.baselines.catalogue import BASELINES
from kgcf.causal.treatment import assign_treatment
from kgcf.config import configure
from kgcf.data.dataset import Dataset
from kgcf.evaluation.ranks import rank_answers
from kgcf.prediction.baseline_graph import BaselineGraph
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.runs.any_model import new_baseline
from kgcf.runs.model_file import new_model
from kgcf.scoring import Scorer

PARTS = 5  # the questions are divided, and every part is timed: the paper takes the mean over 5 splits


def measure_inference(data: Dataset, models: list[str], limit: int | None) -> dict[str, Any]:
    """Seconds of every model for both sides of the test triples, or of `limit` of them, per part and in all."""
    triples = data.test.queries
    if limit is not None and limit < len(triples):
        triples = triples[np.sort(np.random.default_rng(0).choice(len(triples), size=limit, replace=False))]
    parts = np.array_split(triples, min(PARTS, len(triples)))
    seconds = {name: _time(_scorer(name, data), data, parts) for name in models}
    return {
        "questions": 2 * len(triples),
        "test_questions": 2 * len(data.test.queries),
        "seconds": seconds,
        "protocol": "untrained weights; one process; both sides, all entities ranked; the first questions warm up",
    }


def _time(scorer: Scorer, data: Dataset, parts: list[NDArray[np.int32]]) -> list[float]:
    rank_answers(scorer, data.test, parts[0][:2])
    found = []
    for part in parts:
        started = time.perf_counter()
        rank_answers(scorer, data.test, part)
        found.append(time.perf_counter() - started)
    return found


def _scorer(name: str, data: Dataset) -> Scorer:
    """A model of the name with its first weights, on the test split's observed graph."""
    task = data.test
    if name in BASELINES:
        settings = configure(baseline=name)
        return BaselineGraph(new_baseline(settings, data.graph), task.observed, task.entities, data).scorer
    settings = configure("nbfnet" if name == "nbfnet" else "default", data.benchmark)
    treatment = assign_treatment(task.observed, settings.treatment) if settings.decoder.treatment else None
    model = new_model(settings, len(data.relations))
    return ObservedGraph(model, task.observed, task.entities, data.relations, treatment).scorer
