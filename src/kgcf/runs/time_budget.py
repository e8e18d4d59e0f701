"""Settings for a given time: survey the graph, let the rule choose what nobody has fixed, say why."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from kgcf.causal.cache import Cache
from kgcf.causal.cached_stages import CausalStages, Say, quiet
from kgcf.causal.treatment import Treatment
from kgcf.config import Settings, benchmark_values
from kgcf.data.dataset import Dataset
from kgcf.durations import is_auto, read_duration, spoken
from kgcf.machine.compiled import compiling_seconds
from kgcf.runs.passes import passes_per_epoch
from kgcf.runs.settling import check_data, reach_of, settle_depth, settle_removal
from kgcf.runs.survey.graph import options_for, survey_graph
from kgcf.runs.survey.ground import Clock, Ground, MakeContext
from kgcf.runs.survey.memory import paths_first, plan_memory
from kgcf.training.choice import DEPTHS, Choice, Fixed, TimeError, choose, list_options
from kgcf.training.cost_model import Work, prior_model
from kgcf.training.survey import Survey
from kgcf.training.survey_table import survey_table

SHORT = 30.0  # seconds: a training that cannot take longer needs no survey
USUAL = 30 * 60.0  # seconds for data that we have no file of settings for
CHOSEN = ("encoder.layers", "objective.negatives")  # what the rule chooses, besides fan-in and number of passes
LONG = ("training.epochs", "training.budget")  # what else says how long training takes


@dataclass(frozen=True)
class InTime:
    """Settings that end in time, and what they rest on."""

    settings: Settings
    treatment: Treatment | None = None  # made for the survey; the run need not make it again
    record: dict[str, Any] | None = None  # for survey.json; None: nobody asked for a time


@dataclass(frozen=True)
class Situation:
    """Where a training takes place, as far as its time depends on it."""

    context: MakeContext
    device: torch.device
    processes: int = 1
    clock: Clock = time.monotonic
    started: float = field(default_factory=time.monotonic)  # when the command began


def time_limit(wanted: str | float | None, data: Dataset, given: Settings, settings: Settings) -> float | None:
    """Seconds, or None for no limit; `settings` are those `given` on top of a preset.

    `auto` is 30 minutes, except for benchmarks with a file of settings, for a preset with a budget of its own, where
    somebody has said everything that the rule would choose (depth, negatives and how long to train), and for graphs
    so small that no choice could take long.
    """
    if not is_auto(wanted):
        return read_duration(wanted)
    if data.benchmark is not None and benchmark_values(data.benchmark):
        return None
    if settings.training.budget is not None and not is_given(given, "training.budget"):
        return None
    said = all(is_given(given, name) for name in CHOSEN) and any(is_given(given, name) for name in LONG)
    return None if said or longest_training(data, settings) <= SHORT else USUAL


def longest_training(data: Dataset, settings: Settings) -> float:
    """Seconds that no depth exceeds, as far as one can tell beforehand: every pass updates all, by all edges."""
    graph, depth = data.graph, max(DEPTHS[-1], settings.encoder.layers)
    everything = Work(float(depth * graph.entity_count), float(depth * graph.edge_count))
    passes = settings.training.epochs * passes_per_epoch(graph, settings)
    return passes * prior_model().milliseconds(everything) / 1e3


def is_given(given: Settings, name: str) -> bool:
    """Whether somebody, other than a preset, has said this setting: `given` is made without one."""
    section, _, key = name.partition(".")
    return key in getattr(given, section).model_fields_set


def settle_in_time(
    settings: Settings,
    given: Settings,
    data: Dataset,
    seconds: float,
    situation: Situation,
    *,
    say: Say = quiet,
    warn: Say = quiet,
) -> InTime:
    """Survey the graph and choose; refuses before anything is written if the time does not suffice."""
    check_data(settings, data)
    settled = settle_removal(settings, data)
    reach = reach_of(settled, data)
    treatment = _treatment(settled, data, say)
    own = data.valid.observed is data.graph
    elsewhere = treatment if own else _treatment_elsewhere(settled, data)
    ground = Ground(
        data, settled, treatment, elsewhere, situation.device, situation.context, situation.processes, situation.clock
    )
    layers = settled.encoder.layers if is_given(given, CHOSEN[0]) else None
    negatives = settled.objective.negatives if is_given(given, CHOSEN[1]) else None
    options = options_for(layers, negatives, data.graph.entity_count)
    if is_given(given, "training.fan_in") or settled.encoder.everybody:
        options = replace(options, fan_in=settled.training.fan_in, thinned=None)
    survey = survey_graph(ground, options, reach, seconds)
    kept = frozenset(given.memory.model_fields_set)
    memory = plan_memory(data, settled, seconds, survey.questions, kept, situation.clock)
    spent, fixed = situation.clock() - situation.started, fixed_by(settled, given, data)
    if settled.memory.enabled == "auto" and not list_options(memory.added_to(survey), seconds, fixed, spent):
        memory = paths_first(settled.memory, seconds)
    survey, settled = memory.added_to(survey), settled.model_copy(update={"memory": memory.settings})
    choice = _chosen(survey, seconds, fixed, spent)
    chosen = with_choice(settled, choice)
    _report(survey, list_options(survey, seconds, fixed, spent), choice, seconds, say)
    if memory.reason:
        say(f"  → {memory.reason}")
    settle_depth(chosen, reach, keep=layers is not None, say=quiet, warn=warn)
    return InTime(
        chosen, treatment, {"seconds": seconds, "spent": spent, "choice": vars(choice), "survey": survey.to_json()}
    )


def _chosen(survey: Survey, seconds: float, fixed: Fixed, spent: float) -> Choice:
    """The rule's choice; a refusal says if the same command would do now that everything is compiled."""
    try:
        return choose(survey, seconds, fixed, spent)
    except TimeError as error:
        compiled = compiling_seconds()
        if not compiled or not list_options(survey, seconds, fixed, spent - compiled):
            raise
        raise TimeError(
            f"{error} {spoken(compiled)} of it went into compiling for this machine, once after an installation: now "
            "that this is done, the same command suffices."
        ) from error


def fixed_by(settings: Settings, given: Settings, data: Dataset) -> Fixed:
    """What the rule has to keep to; a preset's budget is the most, the user's is kept exactly."""
    training = settings.training
    validated = training.validate_triples
    if validated is None and is_given(given, "training.validate_triples"):
        validated = len(data.valid)
    exact = is_given(given, "training.budget")
    return Fixed(training.epochs, training.budget, exact, validated)


def with_choice(settings: Settings, choice: Choice) -> Settings:
    """The choice as ordinary settings."""
    encoder = settings.encoder.model_copy(update={"layers": choice.layers})
    objective = settings.objective.model_copy(update={"negatives": choice.negatives})
    names = ("budget", "validate_triples", "threads", "fan_in")
    training = settings.training.model_copy(update={name: getattr(choice, name) for name in names})
    return settings.model_copy(update={"encoder": encoder, "objective": objective, "training": training})


def chosen_changes(settings: Settings) -> list[str]:
    """What the rule has chosen, as `--set` takes it."""
    encoder, objective, training = settings.encoder, settings.objective, settings.training
    chosen: dict[str, object] = {
        "encoder.layers": encoder.layers,
        "objective.negatives": objective.negatives,
        "training.budget": training.budget,
        "training.validate_triples": training.validate_triples,
        "training.threads": training.threads,
        "training.fan_in": training.fan_in,
    }
    if settings.memory.enabled == "off":
        chosen["memory.enabled"] = "off"
    else:
        chosen |= {"memory.rank": settings.memory.rank, "memory.epochs": settings.memory.epochs}
    return [f"{name}={'none' if value is None else value}" for name, value in chosen.items()]


def _treatment(settings: Settings, data: Dataset, say: Say) -> Treatment | None:
    if not settings.decoder.treatment:
        return None
    stages = CausalStages(Cache(None), say=say)
    return stages.treatment(data.graph, settings.treatment, data.entities, data.relations)


def _treatment_elsewhere(settings: Settings, data: Dataset) -> Treatment | None:
    """That of the graph which validation observes, where it is another one."""
    if not settings.decoder.treatment:
        return None
    task, stages = data.valid, CausalStages(Cache(None))
    return stages.treatment(task.observed, settings.treatment, task.entities, data.relations, store_changes=False)


def _report(survey: Survey, options: Sequence[Choice], choice: Choice, seconds: float, say: Say) -> None:
    say(f"survey of the graph for {spoken(seconds)} (took {spoken(survey.seconds)}; ~: by the cost model)")
    for line in survey_table(survey, options, choice).splitlines():
        say(f"  {line}")
    stages = ", ".join(f"{name} {spoken(value)}" for name, value in survey.stages.items() if value >= 0.05)
    if stages:
        say(f"  besides: {stages}")
    say(f"  → {choice.reason}")
