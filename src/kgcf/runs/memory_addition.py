"""A memory for a run that is finished: its paths stay as they are, in a new folder that opens like any run."""

from pathlib import Path

from kgcf.causal.cached_stages import Say, quiet
from kgcf.config import Changes, Settings, list_changes, read_values, settings_from, write_toml
from kgcf.errors import SettingsError
from kgcf.prediction.blending.blend import FILE as BLEND
from kgcf.runs.copying import assembled, copy_run
from kgcf.runs.ensemble import FILE as ENSEMBLE
from kgcf.runs.folder import CONFIG, RunFolder
from kgcf.runs.memory_stage import MEMORY_FILES, memory_stage, why_without
from kgcf.runs.run import Run
from kgcf.storage import write_text
from kgcf.training.loop import Listener


def add_memory(
    path: str | Path,
    output: str | Path,
    changes: Changes = (),
    *,
    listener: Listener | None = None,
    say: Say = quiet,
) -> Run:
    """Train a memory beside the paths of a finished run, into a new folder; `changes` are settings of the memory.

    A memory that the run has is left behind. One that was stopped goes on with `kgcf.resume(output)`.
    """
    run, folder = Run.open(path), RunFolder(Path(output))
    settings = _settings(run, changes)
    with assembled(folder.path) as hidden:
        copy_run(run.folder, hidden, without=(CONFIG, *MEMORY_FILES))
        write_text(hidden / CONFIG, write_toml(settings))
        RunFolder(hidden).seal()
    with folder.alone():
        return finish_memory(Run.open(output), listener or Listener(), say)


def is_pending(folder: RunFolder) -> bool:
    """Whether a finished run was to get a memory and was stopped before; an older run has no word of memory."""
    wanted = read_values(folder.file(CONFIG)).get("memory", {}).get("enabled", "off") != "off"
    return wanted and not folder.sealed(BLEND)


def finish_memory(run: Run, listener: Listener, say: Say) -> Run:
    """Train the memory of a run whose paths are trained, or go on with it; then fit the probabilities."""
    run.recall = memory_stage(run.folder, run.data, run.settings, run.bind_task, listener, say)
    run.folder.seal()
    run.calibrate(test=False)
    return run


def _settings(run: Run, changes: Changes) -> Settings:
    """Those of the run, with a memory as wanted; a run that cannot have one is refused."""
    if run.settings.baseline is not None:
        raise SettingsError(
            f"{run.folder.path} is a run of {run.settings.baseline.model}; only kgcf can have a memory."
        )
    if run.folder.sealed(ENSEMBLE):
        raise SettingsError(f"{run.folder.path} is a blend. Give a memory to the runs that it was made of.")
    values = run.settings.model_dump()
    values["memory"]["enabled"] = "auto" if values["memory"]["enabled"] == "off" else values["memory"]["enabled"]
    for change in list_changes(changes):
        for section, keys in change.items():
            if section != "memory":
                raise SettingsError(f"The paths stay as they are: only memory.… can be set here, not {section}.….")
            values[section] |= keys
    settings = settings_from(values)
    if settings.memory.enabled == "off":
        raise SettingsError("memory.enabled=off and --memory contradict each other.")
    if reason := why_without(run.data, settings):
        raise SettingsError(f"{reason} Nothing was written.")
    return settings
