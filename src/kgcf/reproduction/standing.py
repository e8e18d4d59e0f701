"""How a cell stands: open, done, done with settings that are no longer those of the cell, or damaged."""

from dataclasses import dataclass
from typing import Any, Literal

from kgcf.baselines.catalogue import BASELINES
from kgcf.config import Settings, configure
from kgcf.errors import KgcfError, StorageError
from kgcf.reproduction.cells import Cell
from kgcf.reproduction.store import Result, Store
from kgcf.runs.time_budget import CHOSEN, is_given

Word = Literal["open", "done", "outdated", "damaged"]
_MACHINE = ("training.threads", "training.checkpoint_seconds", "training.memory_gb", "baseline.seconds")
_TIMED = ("training.budget", "training.validate_triples")  # a survey chooses them, for the time that there is
_PAIRED_BY = ("treatment.", "space.", "matching.", "training.remove")  # all that substitutes depend on
_SHOWN = 3


@dataclass(frozen=True)
class Standing:
    """A word, and a sentence of why."""

    word: Word
    why: str = ""
    differences: tuple[str, ...] = ()  # section.key: then → now


def standing_of(store: Store, cell: Cell) -> Standing:
    """How a cell stands, from its file and from what the settings of the cell are now."""
    try:
        result = store.read(cell)
    except StorageError as error:
        return Standing("damaged", str(error))
    if result is None:
        return Standing("open")
    found = outdated(cell, result)
    return Standing("outdated", shortly(found), found) if found else Standing("done")


def outdated(cell: Cell, result: Result) -> tuple[str, ...]:
    """What the recorded configuration and that of today say differently; a setting that only one of them has is none.

    What the data, the time or the machine settle is nobody's choice, and may differ from run to run.
    """
    recorded = result.get("configuration")
    return () if recorded is None else changed_settings(cell, recorded)


def changed_settings(cell: Cell, recorded: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """The settings of a cell that were recorded otherwise than they are now, `section.key: then → now`."""
    try:
        now = _configured(cell)
    except KgcfError as error:
        return (f"its settings are refused now: {error}",)
    left_out = _settled(cell, now)
    return tuple(
        f"{section}.{key}: {recorded[section][key]} → {value}"
        for section, values in now.model_dump(mode="json").items()
        for key, value in values.items()
        if key in recorded.get(section, {}) and recorded[section][key] != value and f"{section}.{key}" not in left_out
    )


def shortly(differences: tuple[str, ...]) -> str:
    """The first few of them."""
    more = f" and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
    return ", ".join(differences[:_SHOWN]) + more


def _configured(cell: Cell) -> Settings:
    if cell.model in BASELINES:
        return configure(changes=cell.changes, seed=cell.seed, baseline=cell.model)
    return configure(cell.preset, cell.dataset, changes=cell.changes, seed=cell.seed)


def _names(settings: Settings) -> set[str]:
    """All settings, `section.key`."""
    return {f"{section}.{key}" for section, values in settings.model_dump(mode="json").items() for key in values}


def _settled(cell: Cell, now: Settings) -> set[str]:
    """What changes nothing, or is not the settings' to say: left to the machine, to the data or to a given time."""
    found = set(_MACHINE)
    if now.memory.enabled == "off" or now.baseline is not None:  # how it would be trained changes nothing
        found |= {f"memory.{key}" for key in type(now.memory).model_fields if key != "enabled"}
    if cell.kind == "substitutes":
        return {name for name in _names(now) if not name.startswith(_PAIRED_BY)}
    if cell.kind != "train" or now.baseline is not None:
        return found
    if now.training.remove == "auto":
        found.add("training.remove")
    given = configure(benchmark=cell.dataset, changes=cell.changes)  # what others than the preset say
    chosen = CHOSEN if cell.seconds is not None else CHOSEN[:1]  # without a time only the depth is the data's
    found |= {name for name in chosen if not is_given(given, name)}
    if cell.seconds is not None:
        found |= {*_TIMED, *(f"memory.{key}" for key in ("enabled", "rank", "epochs"))}
    return found
