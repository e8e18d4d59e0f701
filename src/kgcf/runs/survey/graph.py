"""The whole survey: reach, passes, rankings, stages, in a small share of the time there is."""

from collections.abc import Sequence
from dataclasses import dataclass

from kgcf.causal.cache import user_cache
from kgcf.causal.cached_stages import CausalStages
from kgcf.runs.passes import passes_per_epoch
from kgcf.runs.survey.ground import Allowance, Ground
from kgcf.runs.survey.rankings import survey_rankings
from kgcf.runs.survey.stages import StageTimes, count_questions
from kgcf.runs.survey.steps import count_passes, survey_passes
from kgcf.training.choice import DEPTHS, FAN_IN, LEAST_STEPS, NEGATIVES
from kgcf.training.reach import Reach
from kgcf.training.survey import PassCost, Survey

SHARE = 0.03  # of the time: what a survey may take; the last step or ranking may be longer than what is left of it
LONGEST = 15.0  # seconds that a survey takes even where there is much time; a third more where fan-ins are compared
NOTICEABLE = 0.8  # of the messages: a fan-in that leaves more of them is not looked at


@dataclass(frozen=True)
class Options:
    """The depths, numbers of negatives and fan-ins that the rule may choose from."""

    depths: Sequence[int] = DEPTHS
    negatives: Sequence[int] = NEGATIVES
    fan_in: int | None = None  # None: all edges of an update
    thinned: int | None = FAN_IN  # a second one to choose from, where it saves messages; None: there is none


def options_for(layers: int | None, negatives: int | None, entities: int) -> Options:
    """What was fixed, alone; else what is usual. More negatives than half of the entities teach nothing more."""
    few = tuple(count for count in NEGATIVES if 2 * count <= entities) or NEGATIVES[:1]
    return Options(DEPTHS if layers is None else (layers,), few if negatives is None else (negatives,))


def survey_graph(ground: Ground, options: Options, reach: Reach, seconds: float) -> Survey:
    """Look at the graph for at most a small share of the seconds."""
    began = ground.clock()
    allowed = min(LONGEST, SHARE * seconds)
    batch = ground.settings.training.batch_size * ground.settings.training.accumulate
    searching = Allowance(allowed * 0.1, ground.clock)
    stages = StageTimes(ground, CausalStages(user_cache()), searching).seconds()
    hopeless = 1e3 * seconds / (LEAST_STEPS * batch)
    allowance = Allowance(allowed * 0.7, ground.clock)
    passes = survey_passes(ground, options.depths, options.negatives, allowance, hopeless, options.fan_in)
    if _saves(ground, passes[-1], options.thinned):
        more = Allowance(allowed * 0.35, ground.clock)
        passes += survey_passes(ground, options.depths, options.negatives, more, hopeless, options.thinned)
    depths = list(dict.fromkeys(cost.layers for cost in passes))
    ranks = survey_rankings(ground, depths, Allowance(allowed * 0.3, ground.clock))
    return Survey(
        reach=reach.shares,
        passes=tuple(passes),
        ranks=tuple(ranks),
        questions=count_questions(ground.data),
        sweep=passes_per_epoch(ground.data.graph, ground.settings),
        batch=batch,
        stages=stages,
        seconds=ground.clock() - began,
    )


def _saves(ground: Ground, deepest: PassCost, fan_in: int | None) -> bool:
    """Whether a fan-in leaves noticeably fewer messages of the deepest pass that was looked at."""
    if fan_in is None or not deepest.work.messages:
        return False
    left = count_passes(ground, deepest.layers, deepest.negatives, fan_in).messages
    return left < NOTICEABLE * deepest.work.messages
