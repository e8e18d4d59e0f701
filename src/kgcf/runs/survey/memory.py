"""A memory for the time there is: its rank and its epochs, and what it and its weighing will take."""

from dataclasses import dataclass, replace

from kgcf.config import Settings
from kgcf.data.dataset import Dataset
from kgcf.durations import spoken
from kgcf.errors import SettingsError
from kgcf.memory.cost import LEAST_RANK, estimate_question_seconds, fit_to_time
from kgcf.memory.settings import MemorySettings
from kgcf.prediction.blending.reciprocal_ranks import time_trials
from kgcf.runs.memory_stage import why_without
from kgcf.runs.survey.ground import Clock
from kgcf.training.survey import Questions, Survey


@dataclass(frozen=True)
class MemoryPlan:
    """The memory that ends in time."""

    settings: MemorySettings
    reason: str = ""  # a sentence, where the time has changed something; empty where it has not
    stages: tuple[tuple[str, float], ...] = ()  # seconds of what it adds to the run
    weighed: int = 0  # questions that paths answer once more, to be weighed and to be calibrated alone

    def added_to(self, survey: Survey) -> Survey:
        """The survey of the paths with what the memory adds."""
        questions = replace(survey.questions, calibration=survey.questions.calibration + self.weighed)
        return replace(survey, stages={**survey.stages, **dict(self.stages)}, questions=questions)


def plan_memory(
    data: Dataset, settings: Settings, seconds: float, questions: Questions, kept: frozenset[str], clock: Clock
) -> MemoryPlan:
    """The memory of a run that may take so many seconds; `kept` are the keys of its settings that somebody has said.

    `questions` are those that are ranked after training, to which memory speaks too.
    """
    chosen = settings.memory
    if chosen.enabled == "off" or why_without(data, _smallest(settings)):
        return MemoryPlan(chosen)  # there will be none, and the stage says why
    triples = len(data.valid) if chosen.validate_triples is None else min(chosen.validate_triples, len(data.valid))
    found = fit_to_time(
        data.graph,
        chosen,
        seconds,
        asked=2 * triples,
        keep_rank="rank" in kept,
        keep_epochs="epochs" in kept,
        clock=clock,
    )
    if found is None:
        return _without(chosen, seconds)
    fitted = found.settings
    trials = 2 * triples * time_trials(data.valid.observed.entity_count, clock)
    asked = 2 * triples + questions.calibration + questions.test
    heard = asked * estimate_question_seconds(data.graph, fitted, clock)
    stages = (("memory", found.seconds), ("weighing memory", trials + heard))
    reason = f"memory: rank {fitted.rank}, {fitted.epochs} epochs, about {spoken(found.seconds + trials + heard)}"
    return MemoryPlan(fitted, reason, stages, 2 * triples + questions.calibration)


def _smallest(settings: Settings) -> Settings:
    """With the least that the time may make of a memory."""
    least = settings.memory.model_copy(update={"rank": min(settings.memory.rank, LEAST_RANK)})
    return settings.model_copy(update={"memory": least})


def _without(chosen: MemorySettings, seconds: float) -> MemoryPlan:
    """No memory that is worth the name ends in its share of the time."""
    share = f"{chosen.share:.0%} of {spoken(seconds)} (memory.share)"
    if chosen.enabled == "on":
        raise SettingsError(
            f"memory.enabled is on, and {share} do not suffice for one. Give more time, a larger memory.share, or "
            "fewer memory.epochs of a smaller memory.rank. Nothing was written."
        )
    return _off(chosen, f"{share} do not suffice for one")


def paths_first(chosen: MemorySettings, seconds: float) -> MemoryPlan:
    """No memory, where what it takes would leave the paths too little of the time."""
    return _off(chosen, f"{spoken(seconds)} do not suffice for paths and memory")


def _off(chosen: MemorySettings, why: str) -> MemoryPlan:
    return MemoryPlan(chosen.model_copy(update={"enabled": "off"}), f"memory: none, for {why}")
