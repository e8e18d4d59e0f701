"""What the stages beside training will take: entity space, matching; and how many questions are ranked after it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgcf.causal.cached_stages import CausalStages
from kgcf.causal.embedding import SpaceSettings
from kgcf.causal.embedding.entity_space import embed_relation
from kgcf.causal.relation_graphs import RelationGraph, relation_graphs
from kgcf.causal.treatment import Treatment
from kgcf.config import Settings
from kgcf.data.dataset import Dataset, Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.prediction.calibration.calibrate import LIMIT
from kgcf.prediction.calibration.sampling import questions_of
from kgcf.runs.survey.ground import Allowance, Ground
from kgcf.runs.survey.matching import estimate_matching, rough_space
from kgcf.runs.survey.side_by_side import measure_gain
from kgcf.training.survey import Questions

FITTING = 3.0  # seconds of the two fits of a calibration, its report and its plot, where there is much to fit
SAMPLED_STEPS = 20_000  # steps of walks that are trained on to see how long one takes
TWICE = 32_000  # entities of a relation in which a step takes twice as long: no cache holds so many vectors
SLOWEST = 2.5  # a step never takes more than so many times as long as in a small relation


@dataclass(frozen=True)
class StageTimes:
    """Measures stages on samples."""

    ground: Ground
    stages: CausalStages  # knows what is kept from earlier
    allowance: Allowance  # for searching

    def seconds(self) -> dict[str, float]:
        """Seconds by stage; a stage that is not needed, or kept from earlier, is not there."""
        settings, treatment = self.ground.settings, self.ground.treatment
        found: dict[str, float] = {}
        if treatment is not None and settings.needs_matching:
            found |= self._substitutes(self.ground.data.graph, settings, treatment)
        if len(self.ground.data.valid):
            found["fitting probabilities"] = FITTING * min(1.0, len(self.ground.data.valid) / LIMIT)
        return found

    def _substitutes(self, graph: KnowledgeGraph, settings: Settings, treatment: Treatment) -> dict[str, float]:
        """Entity space and matching, as far as they are not kept from earlier."""
        remove = settings.training.remove
        assert remove != "auto"
        if not self.stages.has_space(graph, settings.space):
            parts = [part for part in relation_graphs(graph) if len(part)]
            space = rough_space(graph, parts, settings.space)
            matching = estimate_matching(self.ground, space, self.allowance)
            return {"entity space": self._space(parts, settings.space), "matching": matching}
        kept = self.stages.space(graph, settings.space)
        choices = (settings.matching.candidates, settings.treatment.leave_one_out, remove)
        if self.stages.has_table(kept, treatment, *choices):
            return {}
        return {"matching": estimate_matching(self.ground, kept, self.allowance)}

    def _space(self, parts: list[RelationGraph], settings: SpaceSettings) -> float:
        """Relations are embedded side by side: as long as the longest takes, or all together by what cores gain."""
        if not parts:
            return 0.0
        small = [part for part in parts if len(part) * settings.length <= SAMPLED_STEPS]
        part = max(small, key=len) if small else min(parts, key=len)
        length = min(settings.length, max(2 * settings.window, SAMPLED_STEPS // len(part)))
        sample = settings.model_copy(update={"walks": 1, "epochs": 1, "length": length})
        embed_relation(min(parts, key=len), sample.model_copy(update={"length": 4}))  # compiles
        began = self.ground.clock()
        embed_relation(part, sample)
        rate = (self.ground.clock() - began) / (len(part) * length)
        gain = measure_gain(lambda: embed_relation(part, sample), self.ground.clock)
        return space_seconds([len(part) for part in parts], settings, rate, gain)


def space_seconds(sizes: Sequence[int], settings: SpaceSettings, rate: float, gain: float) -> float:
    """Of relations with so many entities, where a step of a walk in a small one takes `rate` seconds."""
    entities = np.array(sizes)
    steps = entities * settings.walks * settings.length * settings.epochs
    taken = steps * rate * np.minimum(1 + entities / TWICE, SLOWEST)
    return float(max(taken.max(), taken.sum() / gain))


def count_questions(data: Dataset) -> Questions:
    """How many questions validation, calibration and test ask; those of a larger test graph count for more."""
    valid, test = _distinct(data.valid), _distinct(data.test)
    larger = max(1.0, len(data.test.observed) / max(len(data.valid.observed), 1))
    proposed = len(np.unique(data.valid.observed.triples[:, :2], axis=0))  # what completing the graph asks
    fitted = min(valid, 2 * LIMIT) + min(proposed, LIMIT) if valid else 0
    reported = min(test, 2 * LIMIT) * larger
    return Questions(valid, len(data.valid), round(fitted + reported), round(test * larger))


def _distinct(task: Split) -> int:
    """(head, relation) of both sides; a question that several triples ask is ranked once."""
    return len(questions_of(task.queries, task.observed.relation_count))
